//! The tables of resources and attempts: claims, snapshots, declarations, the
//! record of a tick.

pub(crate) mod attempts;
pub(crate) mod batch;
pub(crate) mod claims;
pub(crate) mod decide;
pub(crate) mod declare;
pub(crate) mod list;
pub(crate) mod partitions;
pub(crate) mod port;
pub(crate) mod provider;
pub(crate) mod reads;
pub(crate) mod recorded;
pub(crate) mod set_writes;
pub(crate) mod snapshot;

use super::{
    Backend, Connection, Db, Row, commit, deletion, json_values, nodes, operations, page, record,
    rows, transaction, writes,
};
