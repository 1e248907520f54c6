//! Roll-outs.

pub(crate) mod named;
pub(crate) mod port;
pub(crate) mod reads;
pub(crate) mod write;

use super::{
    Backend, Connection, Db, Row, deletion, page, row_set, rows, table, topology, transaction,
    writes,
};
