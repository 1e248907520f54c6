//! The broker: resources, and explanations of any subject.

mod explain;
mod resources;
mod rows;

pub(crate) use rows::rows;
