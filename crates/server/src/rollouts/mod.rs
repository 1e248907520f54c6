//! Roll-outs.

mod handlers;
mod rows;

pub(crate) use handlers::{planned, started, strategy, strategy_document};
pub(crate) use rows::rows;
