//! The tables of tenants. The library reads and writes jobs through its own store, which calls
//! the sink in its transactions; only their insertion and removal are here.

pub(crate) mod jobs;
pub(crate) mod named;
pub(crate) mod port;
pub(crate) mod profile;
pub(crate) mod purge;
pub(crate) mod sink;
pub(crate) mod tasks;
pub(crate) mod tenant;
pub(crate) mod write;

use super::{
    Backend, Connection, Db, Jobs, Row, catalog, commit, fleet, page, row_set, rows, table, writes,
};
