//! Deletions and leaks.

pub(crate) mod leak_rows;
pub(crate) mod leak_writes;
pub(crate) mod leaks;
pub(crate) mod port;

use super::{
    Backend, Connection, Db, Row, access, broker, commit, json_values, page, rows, transaction,
};
