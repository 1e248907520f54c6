//! Clusters, the namespaces of projects on them, and definitions.

pub(crate) mod cluster;
pub(crate) mod definitions;
pub(crate) mod hydrate;
pub(crate) mod named;
pub(crate) mod namespace;
pub(crate) mod port;
pub(crate) mod purge;
pub(crate) mod seed;
pub(crate) mod write;

use super::{
    Backend, Connection, Row, broker, catalog, page, row_set, rows, table, topology, transaction,
    writes,
};
