//! The tables of Fleet. What has a name is one file each; the leaves follow.

#[macro_use]
pub(crate) mod kinds;
pub(crate) mod agent;
pub(crate) mod declared;
pub(crate) mod generator;
pub(crate) mod links;
pub(crate) mod members;
pub(crate) mod named;
pub(crate) mod objects;
pub(crate) mod offers;
pub(crate) mod overview;
pub(crate) mod port;
pub(crate) mod progress;
pub(crate) mod prunes;
pub(crate) mod purge;
pub(crate) mod renderings;
pub(crate) mod reports;
pub(crate) mod restore;
pub(crate) mod rolling;
pub(crate) mod stack;
pub(crate) mod tags;
pub(crate) mod template;
pub(crate) mod write;

use super::{
    Backend, Connection, OVERWRITE, Row, catalog, deletion, operations, page, rollouts, row_set,
    rows, table, transaction, writes,
};
