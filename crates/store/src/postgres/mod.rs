//! The store on PostgreSQL: a pool, READ COMMITTED and explicit row locks.
//!
//! This module contains what is particular to PostgreSQL; the statements are in
//! `shared/`.

#[macro_use]
mod dialect;
#[cfg(test)]
mod commit_tests;
pub(crate) mod connect;
mod inspect;
mod json_values;
#[cfg(test)]
mod lock_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod poll_tests;
mod record;

#[path = "../shared/mod.rs"]
pub(crate) mod shared;

pub(crate) use connect::{
    Backend, JOIN_SETS, OVERWRITE, SCHEMA_MIGRATIONS, begin_migration, scripts,
};
pub(crate) use inspect::{HAS_SCHEMA, inspect};

pub(crate) type Db = sqlx::Postgres;
pub(crate) type Connection = sqlx::PgConnection;
/// Jobs of tenants, as the library keeps them.
pub(crate) type Jobs = slipway_tenants::PostgresStore;
pub(crate) type Row = <Db as sqlx::Database>::Row;
