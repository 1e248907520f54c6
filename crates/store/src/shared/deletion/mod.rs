//! Deletions and leaks.

pub(crate) mod brakes;
pub(crate) mod decide;
pub(crate) mod filter;
pub(crate) mod hydrate;
pub(crate) mod leak_rows;
pub(crate) mod leaks;
pub(crate) mod marks;
pub(crate) mod named;
pub(crate) mod plans;
pub(crate) mod port;
pub(crate) mod protections;
pub(crate) mod purge;
pub(crate) mod reads;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod settings;
pub(crate) mod write;

use super::{
    Backend, Connection, Db, JOIN_SETS, Row, access, blockers, broker, catalog, events, files,
    fleet, history, json_values, nodes, operations, page, placement, row_set, rows, table, tenants,
    topology, transaction, writes,
};
