//! The store on either database: each statement is written once here and
//! compiled for both, since both include this module and name their own types
//! and dialect. A domain is a room, and only its room writes a table. Beside the
//! rooms stands what all of them use: the transaction, pages, migrations.

pub(crate) mod blockers;
pub(crate) mod commit;
pub(crate) mod history;
pub(crate) mod migrate;
#[macro_use]
pub(crate) mod named;
pub(crate) mod page;
#[macro_use]
pub(crate) mod row_set;
pub(crate) mod rows;
pub(crate) mod schema;
#[macro_use]
pub(crate) mod table;
#[macro_use]
pub(crate) mod transaction;
pub(crate) mod writes;

pub(crate) mod access;
pub(crate) mod broker;
pub(crate) mod catalog;
pub(crate) mod deletion;
pub(crate) mod events;
pub(crate) mod files;
#[macro_use]
pub(crate) mod fleet;
pub(crate) mod nodes;
pub(crate) mod operations;
pub(crate) mod placement;
pub(crate) mod rollouts;
pub(crate) mod tenants;
pub(crate) mod topology;

use super::{
    Backend, Connection, Db, HAS_SCHEMA, JOIN_SETS, Jobs, OVERWRITE, Row, SCHEMA_MIGRATIONS,
    begin_migration, json_values, record, scripts,
};
