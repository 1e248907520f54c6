//! The registry of nodes, their mesh addresses, and bootstrap tokens.

pub(crate) mod enrol;
pub(crate) mod hydrate;
pub(crate) mod machines;
pub(crate) mod mesh;
pub(crate) mod named;
pub(crate) mod port;
pub(crate) mod purge;
pub(crate) mod reads;
pub(crate) mod tokens;
pub(crate) mod write;

use super::{
    Backend, Connection, Row, broker, json_values, page, row_set, rows, transaction, writes,
};
