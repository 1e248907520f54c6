//! Tenants in schemas of a PostgreSQL database, version 15 or later.
//!
//! The provisioner needs `LOGIN CREATEROLE` and `CREATE` on the database; it need not be a
//! superuser. [`connections`] has its sessions, [`ledger`] what belongs to whom and the fence,
//! [`schema`] makes a tenant, [`migrate`] changes it, [`remove`] ends it, [`drift`] compares it,
//! [`export`] copies it.

/// Reads a struct from the columns that are named like its fields.
macro_rules! from_row {
    ($type:ident { $($field:ident),* }) => {
        impl<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow> for $type {
            fn from_row(row: &'r sqlx::postgres::PgRow) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                Ok(Self { $($field: row.try_get(stringify!($field))?),* })
            }
        }
    };
}

mod text;

mod connections;
mod ledger;

mod drift;
mod export;
mod migrate;
mod remove;
mod schema;

mod target;

pub(crate) use target::PostgresTarget;
use text::{literal, quoted};
