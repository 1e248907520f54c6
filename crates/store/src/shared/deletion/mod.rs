//! Deletions and leaks.

pub(crate) mod hydrate;
pub(crate) mod leak_rows;
pub(crate) mod leaks;
pub(crate) mod named;
pub(crate) mod port;
pub(crate) mod reads;
pub(crate) mod write;

use super::{
    Backend, Connection, Db, Row, access, broker, json_values, page, row_set, rows, transaction,
    writes,
};
