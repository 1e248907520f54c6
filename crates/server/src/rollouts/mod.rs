//! Roll-outs.

mod handlers;
mod rows;

pub(crate) use rows::rows;
