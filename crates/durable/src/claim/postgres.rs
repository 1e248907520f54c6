//! The claims of a table on PostgreSQL.

#[path = "binding.rs"]
mod binding;
#[cfg(feature = "testing")]
#[path = "testing/conformance.rs"]
mod conformance;

#[cfg(feature = "testing")]
pub use conformance::conforms;

type Db = sqlx::Postgres;
type Connection = sqlx::PgConnection;
type Row = sqlx::postgres::PgRow;
