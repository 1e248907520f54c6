//! Who declared which fields of an object, and what could not be applied.

pub(crate) mod declared;
pub(crate) mod faults;
pub(crate) mod port;
pub(crate) mod write;

use super::{Backend, Connection, Row, page, rows, writes};
