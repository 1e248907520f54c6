//! The tables of workspaces and of their groups. Servers are resources; what the gates ask
//! about them is read here, by the columns that say whose they are.

pub(crate) mod batch;
pub(crate) mod decide;
pub(crate) mod group;
pub(crate) mod named;
pub(crate) mod port;
pub(crate) mod purge;
pub(crate) mod reads;
pub(crate) mod servers;
pub(crate) mod waiting;
pub(crate) mod workspace;
pub(crate) mod write;

use super::{
    Backend, Connection, Db, Row, blockers, broker, catalog, commit, deletion, page, rollouts,
    row_set, rows, table, transaction, writes,
};
