//! The broker: resources, and why something is where it is.

mod documents;
mod explain;
mod resources;
mod rows;

pub(crate) use rows::rows;
