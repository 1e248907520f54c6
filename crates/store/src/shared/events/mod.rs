//! The outbox and its subscriptions.

pub(crate) mod named;
pub(crate) mod of_project;
pub(crate) mod outbox;
pub(crate) mod owed;
pub(crate) mod port;
pub(crate) mod prune;
pub(crate) mod subscriptions;
pub(crate) mod write;

use super::{Backend, Connection, Db, Row, access, json_values, page, rows, writes};
