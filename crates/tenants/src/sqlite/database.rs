//! What is particular to SQLite: connections, the columns of the table, locks, and the few
//! expressions that only it spells so.

use std::path::Path;
use std::sync::Arc;

use slipway_durable::database::{STATEMENT_LIMIT, TableName, sqlite};
use sqlx::Connection as _;

use super::{Connection, Store};
use crate::Error;

impl Store {
    /// A store in this file, which is made if there is none. Every commit is flushed to
    /// the disk. Empty means [`DEFAULT_TABLE`](crate::DEFAULT_TABLE).
    pub async fn open(file: &Path, table: &str) -> Result<Self, Error> {
        let options = sqlite::options(file);
        let opened = async {
            sqlite::connect(&options).await?.close().await?;
            sqlite::gateway(options, STATEMENT_LIMIT).await
        };
        let database = opened.await.map_err(|error| Error::Unavailable(error.to_string()))?;
        Self::new(Arc::new(database), table)
    }
}

/// A file has no schemas.
pub(super) fn is_possible(table: &TableName) -> bool {
    table.schema().is_none()
}

/// As on PostgreSQL; times are microseconds since the Unix epoch.
pub(super) const EIGHT: &str = "id TEXT NOT NULL PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    last_error TEXT NOT NULL DEFAULT '',
    metadata TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))";
pub(super) const EXTRA: [(&str, &str, &str); 16] = [
    ("partition", "TEXT NOT NULL", "''"),
    ("retry_of", "TEXT", "NULL"),
    ("due_at", "INTEGER", "0"),
    ("wake", "INTEGER NOT NULL", "0"),
    ("claim_token", "INTEGER NOT NULL", "0"),
    ("claimed_wake", "INTEGER NOT NULL", "0"),
    ("result_token", "INTEGER NOT NULL", "0"),
    ("claimed_by", "TEXT", "NULL"),
    ("lease_until", "INTEGER", "NULL"),
    ("failures", "INTEGER NOT NULL", "0"),
    ("made", "TEXT", "NULL"),
    ("leaked", "TEXT NOT NULL", "'[]'"),
    ("history", "TEXT NOT NULL", "'[]'"),
    ("paused", "TEXT", "NULL"),
    ("cancelled", "TEXT", "NULL"),
    ("decommissioned_at", "INTEGER", "NULL"),
];
pub(super) const TABLE_OPTIONS: &str = " STRICT";
pub(super) const AFTER_UPGRADE: Option<&str> = None;

/// A table with the documented columns alone, with the defaults of the others.
pub(super) const EIGHT_COLUMNS: &str = "(SELECT id, tenant_id, state, attempts, last_error, metadata, \
     created_at, updated_at, '' AS partition, NULL AS retry_of, 0 AS failures, NULL AS due_at, \
     NULL AS claimed_by, NULL AS lease_until, 0 AS claim_token, 0 AS result_token, NULL AS made, '[]' AS leaked, \
     '[]' AS history, NULL AS paused, NULL AS cancelled, NULL AS decommissioned_at \
     FROM {table}) AS jobs";

pub(super) const COLUMNS_OF: &str = "SELECT name FROM pragma_table_info($1)";
pub(super) const INDEXES_OF: &str = "SELECT name FROM pragma_index_list($1)";

/// The name for the two above.
pub(super) const CATALOG_NAME: &str = "{part}";

/// The entries of the history with the new ones, whose time the database knows.
pub(super) const HISTORY: &str = "(SELECT json_group_array(json(entry)) FROM \
     (SELECT value AS entry FROM json_each(history) UNION ALL \
      SELECT json_set(value, '$.at', coalesce(given.at, \
          CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER))) FROM json_each(given.entries)))";

pub(super) fn lacks_a_column(error: &sqlx::Error) -> bool {
    let text = error.as_database_error().map(|error| error.message().to_owned());
    text.is_some_and(|text| text.contains("no such column") || text.contains("has no column"))
}

/// A transaction that writes is alone in the file from its first statement, so there is
/// nothing to lock.
pub(super) async fn lock_table(_: &mut Connection, _: &TableName) -> Result<(), sqlx::Error> {
    Ok(())
}

pub(super) async fn lock_tenants(
    _: &mut Connection,
    _: &TableName,
    _: impl Iterator<Item = &str> + Send,
) -> Result<(), sqlx::Error> {
    Ok(())
}
