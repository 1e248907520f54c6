//! The store on either database: each statement is written once here and compiled for
//! both. `statements` has their text, `rows` what is read and given, `schema` makes the
//! table, `upsert` inserts, `write` writes changes.

mod rows;
mod schema;
mod statements;
mod store;
mod upsert;
mod write;

pub use store::Store;

use super::{
    AFTER_UPGRADE, CATALOG_NAME, COLUMNS_OF, Connection, Db, EIGHT, EIGHT_COLUMNS, EXTRA, HISTORY,
    INDEXES_OF, Row, TABLE_OPTIONS, is_possible, lacks_a_column, lock_table, lock_tenants,
};
