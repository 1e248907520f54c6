//! Deletions and leaks.

pub(crate) mod decide;
pub(crate) mod hydrate;
pub(crate) mod leak_rows;
pub(crate) mod leaks;
pub(crate) mod marks;
pub(crate) mod named;
pub(crate) mod port;
pub(crate) mod protections;
pub(crate) mod reads;
pub(crate) mod report;
pub(crate) mod write;

use super::{
    Backend, Connection, Db, Row, access, blockers, broker, catalog, json_values, nodes, page,
    placement, row_set, rows, table, transaction, writes,
};
