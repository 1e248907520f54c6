//! The outbox and its subscriptions.

pub(crate) mod outbox;
pub(crate) mod port;
pub(crate) mod subscriptions;

use super::{Backend, Connection, Db, Row, access, operations, writes};
