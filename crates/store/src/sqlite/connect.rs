//! Opening the file, its connections and its transactions.
//!
//! Writes go through one connection and start with BEGIN IMMEDIATE: a deferred
//! transaction that reads first and writes later fails at once with
//! BUSY_SNAPSHOT when another writer came in between, and no timeout helps.
//! Readers have a pool of their own and see the last committed state (WAL).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use slipway_app::files::port::Beside;
use slipway_durable::database::{Begin, Gateway, Source, retried, retried_on};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Transaction};

use super::{Connection, Db};
use crate::blueprints::Blueprints;
use crate::config::{OpenError, SqliteFile};
use crate::directory::{DirectoryError, DirectoryLock};
use crate::migration::{Migration, MigrationError, Scripts};
use crate::private_files;

/// Longer than the longest write transaction; only the migrations of several
/// processes at once ever wait for it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

const READERS: u32 = 8;

/// SQLite joins by nested loops, whatever it reads.
pub(crate) const JOIN_SETS: Option<&str> = None;

/// Overwrites the pages that a statement frees with zeros, and stops that.
pub(crate) const OVERWRITE: Option<(&str, &str)> =
    Some(("PRAGMA secure_delete = on", "PRAGMA secure_delete = off"));

pub(crate) const SCHEMA_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
        DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    min_reader INTEGER NOT NULL
) STRICT";

/// How transactions begin: a write transaction is alone in the database from
/// its first statement.
const BEGIN: Begin = Begin { write: "BEGIN IMMEDIATE", read: "BEGIN" };

#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) database: Arc<Gateway<Db>>,
    pub(super) blueprints: Arc<Blueprints>,
    /// What every decision writes too.
    pub(super) beside: Option<Arc<Beside>>,
    lock: Arc<DirectoryLock>,
}

impl Backend {
    /// Locks the directory of `file`, migrates, and opens both pools.
    pub(crate) async fn open(
        file: &SqliteFile,
        statement_limit: Duration,
    ) -> Result<Self, OpenError> {
        let lock = lock_directory(&file.path)?;
        prepare_file(&file.path)?;
        let mut options = options(&file.path);
        if let Some(pages) = file.max_page_count {
            options = options.pragma("max_page_count", pages.to_string());
        }
        let mut connection = connect(&options).await?;
        retried_on(&mut connection, super::shared::migrate::migrate_up).await?;
        super::shared::operations::installation::ensure(&mut connection)
            .await
            .map_err(MigrationError::from)?;
        connection.close().await.map_err(OpenError::Sqlite)?;
        let writer = pool(1).connect_with(options.clone()).await.map_err(OpenError::Sqlite)?;
        let readers = pool(READERS)
            .connect_with(options.pragma("query_only", "on"))
            .await
            .map_err(OpenError::Sqlite)?;
        let database = Gateway::new(Source::Fixed { writer, readers }, BEGIN, statement_limit);
        Ok(Self {
            database: Arc::new(database),
            blueprints: Arc::default(),
            beside: None,
            lock: Arc::new(lock),
        })
    }

    /// The same store, whose decisions write this too.
    pub(super) fn with(&self, beside: Arc<Beside>) -> Self {
        Self {
            database: Arc::clone(&self.database),
            blueprints: Arc::clone(&self.blueprints),
            beside: Some(beside),
            lock: Arc::clone(&self.lock),
        }
    }
}

/// Locks the directory of the file for this process.
pub(crate) fn lock_directory(file: &Path) -> Result<DirectoryLock, DirectoryError> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    DirectoryLock::acquire(directory.unwrap_or_else(|| Path::new(".")))
}

/// Makes sure that there is a file, for its owner alone.
pub(crate) fn prepare_file(file: &Path) -> Result<(), OpenError> {
    private_files::prepare(file).map_err(|error| OpenError::Sqlite(error.into()))
}

pub(crate) fn options(file: &Path) -> SqliteConnectOptions {
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

/// Switching a new file to WAL takes an exclusive lock for which SQLite does
/// not wait by itself.
pub(crate) async fn connect(options: &SqliteConnectOptions) -> Result<Connection, OpenError> {
    retried(options, SqliteConnectOptions::connect).await.map_err(OpenError::Sqlite)
}

/// The write lock of the file is the migration lock.
pub(crate) async fn begin_migration(
    connection: &mut Connection,
) -> Result<Transaction<'_, Db>, sqlx::Error> {
    connection.begin_with("BEGIN IMMEDIATE").await
}

pub(crate) fn scripts(migration: &'static Migration) -> &'static Scripts {
    &migration.sqlite
}
