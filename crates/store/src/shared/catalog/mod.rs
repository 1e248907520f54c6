//! The tables of the catalog, one file per kind.

pub(crate) mod blueprint;
pub(crate) mod cloud;
pub(crate) mod credential;
pub(crate) mod for_declaration;
pub(crate) mod label;
pub(crate) mod named;
pub(crate) mod port;
pub(crate) mod project;
pub(crate) mod purge;
pub(crate) mod seed;
pub(crate) mod version_hydrate;
pub(crate) mod write;

use super::{
    Backend, Connection, Row, broker, fleet, nodes, page, placement, row_set, rows, table, tenants,
    topology, transaction, writes,
};
