//! The installation: its mode, replicas, tasks, counts and retention.

pub(crate) mod clock;
pub(crate) mod control;
pub(crate) mod counts;
pub(crate) mod installation;
pub(crate) mod ping;
pub(crate) mod port;
pub(crate) mod retention;
pub(crate) mod tasks;

use super::{
    Backend, Connection, Db, Row, access, broker, catalog, commit, events, history, rows,
    transaction,
};
