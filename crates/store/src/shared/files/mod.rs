//! Who declared which fields of an object.

pub(crate) mod declared;
pub(crate) mod port;
pub(crate) mod write;

use super::{Backend, Connection, Row, page, rows, writes};
