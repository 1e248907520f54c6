//! A gateway to a SQLite file.
//!
//! Writes go through one connection and start with BEGIN IMMEDIATE: a deferred
//! transaction that reads first and writes later fails at once with
//! BUSY_SNAPSHOT when another writer came in between, and no timeout helps.
//! Readers have a pool of their own and see the last committed state (WAL).

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, SqliteConnection};

use super::gateway::{Begin, Gateway};
use super::pools::Source;
use super::retry::retried;

/// Longer than the longest write transaction; only the migrations of several
/// processes at once ever wait for it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

const READERS: u32 = 8;

/// At most 16 MiB, eight times the default: decisions count rows all over the file, and the others
/// wait for the one that reads them.
const WRITER_CACHE: &str = "-16384";

/// How transactions begin: a write transaction is alone in the database from
/// its first statement.
pub const BEGIN: Begin = Begin { write: "BEGIN IMMEDIATE", read: "BEGIN" };

pub fn options(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // FULL, not NORMAL: in WAL mode NORMAL may lose the last commits in a
        // power loss, and an acknowledged decision must not be lost.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
}

/// Opens one connection. Switching a new file to WAL takes an exclusive lock for which
/// SQLite does not wait by itself.
pub async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    retried(options, SqliteConnectOptions::connect).await
}

/// A gateway with one writer. The file is in WAL mode already: see [`connect`].
pub async fn gateway(
    options: SqliteConnectOptions,
    statement_limit: Duration,
) -> Result<Gateway<Sqlite>, sqlx::Error> {
    let writer = pool(1).connect_with(options.clone().pragma("cache_size", WRITER_CACHE)).await?;
    let readers = pool(READERS).connect_with(options.pragma("query_only", "on")).await?;
    Ok(Gateway::new(Source::Fixed { writer, readers }, BEGIN, statement_limit))
}

fn pool(size: u32) -> SqlitePoolOptions {
    // A connection to a file does not go stale, so none is tested or retired.
    SqlitePoolOptions::new()
        .max_connections(size)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        // After some errors (a full disk, a failed read) SQLite has rolled back by
        // itself. The driver's own rollback then fails, and the driver believes for
        // ever that it is inside a transaction: it would refuse every later BEGIN.
        .before_acquire(|connection, _| {
            let usable = !connection.is_in_transaction();
            Box::pin(async move { Ok(usable) })
        })
}
