//! The broker: resources, and explanations of any subject.

mod changes;
mod explain;
mod resources;
mod rows;

pub(crate) use explain::{blocker, explanation};
pub(crate) use resources::{TAIL_DEFAULT, TAIL_MAX};
pub(crate) use rows::rows;
