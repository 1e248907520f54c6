//! The store on SQLite. `database` has what is particular to it; the statements are in
//! `shared/`.

#[macro_use]
mod dialect;
mod database;

#[path = "../shared/mod.rs"]
mod shared;

use database::{
    AFTER_UPGRADE, CATALOG_NAME, COLUMNS_OF, EIGHT, EIGHT_COLUMNS, EXTRA, HISTORY, INDEXES_OF,
    TABLE_OPTIONS, is_possible, lacks_a_column, lock_table, lock_tenants,
};
pub use shared::Store;

type Db = sqlx::Sqlite;
type Connection = sqlx::SqliteConnection;
type Row = sqlx::sqlite::SqliteRow;
