//! The registry of nodes, their mesh addresses, and bootstrap tokens.

pub(crate) mod enrol;
pub(crate) mod mesh;
pub(crate) mod port;
pub(crate) mod token_by_hash;
pub(crate) mod tokens;

use super::{Backend, Connection, Row, access, broker, page, rows, transaction};
