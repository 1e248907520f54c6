//! The claims of a table on SQLite.

#[path = "binding.rs"]
mod binding;
#[cfg(feature = "testing")]
#[path = "testing/conformance.rs"]
mod conformance;

#[cfg(feature = "testing")]
pub use conformance::conforms;

type Db = sqlx::Sqlite;
type Connection = sqlx::SqliteConnection;
type Row = sqlx::sqlite::SqliteRow;
