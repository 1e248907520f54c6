//! Clusters, the namespaces of projects on them, and definitions.

pub(crate) mod cluster;
pub(crate) mod definitions;
pub(crate) mod hydrate;
pub(crate) mod namespace;
pub(crate) mod port;
pub(crate) mod write;

use super::{
    Backend, Connection, Row, catalog, deletion, page, row_set, rows, table, transaction, writes,
};
