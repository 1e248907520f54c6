//! The broker: resources, and explanations of any subject.

mod documents;
mod explain;
mod resources;
mod rows;

pub(crate) use rows::rows;
