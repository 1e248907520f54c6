//! The installation: its mode, replicas, tasks, counts and seed.

pub(crate) mod clock;
pub(crate) mod control;
pub(crate) mod counts;
pub(crate) mod installation;
pub(crate) mod ping;
pub(crate) mod port;
pub(crate) mod seed;
pub(crate) mod tasks;

use super::{
    Backend, Connection, Db, Row, access, blockers, broker, catalog, deletion, events, fleet,
    nodes, placement, rollouts, rows, tenants, transaction,
};
