//! The store on SQLite: one writer, many readers, one process.
//!
//! This module contains what is particular to SQLite; the statements are in `shared/`.

#[macro_use]
mod dialect;
pub(crate) mod backup;
pub(crate) mod connect;
mod inspect;
mod json_values;
#[cfg(test)]
mod plan_tests;
mod record;

#[path = "../shared/mod.rs"]
pub(crate) mod shared;

pub(crate) use connect::{
    Backend, JOIN_SETS, OVERWRITE, SCHEMA_MIGRATIONS, begin_migration, scripts,
};
pub(crate) use inspect::{HAS_SCHEMA, inspect};

pub(crate) type Db = sqlx::Sqlite;
pub(crate) type Connection = sqlx::SqliteConnection;
/// Jobs of tenants, as the library keeps them.
pub(crate) type Jobs = slipway_tenants::SqliteStore;
pub(crate) type Row = <Db as sqlx::Database>::Row;
