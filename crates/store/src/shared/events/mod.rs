//! The outbox and its subscriptions.

pub(crate) mod outbox;
pub(crate) mod port;
pub(crate) mod subscriptions;
pub(crate) mod write;

use super::{Backend, Connection, Row, access, commit, json_values, operations, writes};
