//! The tables of resources and attempts: claims, snapshots, declarations, the
//! record of a tick.

pub(crate) mod attempts;
pub(crate) mod batch;
pub(crate) mod claimants;
pub(crate) mod claims;
pub(crate) mod decide;
pub(crate) mod declarations;
pub(crate) mod declare;
pub(crate) mod hydrate;
pub(crate) mod list;
pub(crate) mod marks;
pub(crate) mod named;
pub(crate) mod partitions;
pub(crate) mod port;
pub(crate) mod provider;
pub(crate) mod purge;
pub(crate) mod reads;
pub(crate) mod recorded;
pub(crate) mod retention;
pub(crate) mod snapshot;
pub(crate) mod users;
pub(crate) mod withheld;
pub(crate) mod write;

use super::{
    Backend, Connection, Db, Row, blockers, catalog, commit, deletion, history, json_values, nodes,
    operations, page, placement, record, row_set, rows, table, topology, transaction, writes,
};
