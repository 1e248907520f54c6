//! Opening the file, its connections and its transactions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use slipway_app::files::port::Beside;
pub(crate) use slipway_durable::database::sqlite::options;
use slipway_durable::database::{Gateway, retried_on, sqlite};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, Transaction};
use tokio::sync::Semaphore;

use super::shared::topology::port::GATES_AT_ONCE;
use super::{Connection, Db, Jobs};
use crate::blueprints::Blueprints;
use crate::config::{OpenError, SqliteFile};
use crate::directory::{DirectoryError, DirectoryLock};
use crate::migration::{Migration, MigrationError, Scripts};
use crate::private_files;

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

#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) database: Arc<Gateway<Db>>,
    pub(crate) jobs: Jobs,
    pub(super) blueprints: Arc<Blueprints>,
    /// What every decision writes too.
    pub(super) beside: Option<Arc<Beside>>,
    /// Lets decisions about servers in.
    pub(super) gates: Arc<Semaphore>,
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
        let database =
            sqlite::gateway(options, statement_limit).await.map_err(OpenError::Sqlite)?;
        let database = Arc::new(database);
        Ok(Self {
            jobs: super::shared::tenants::jobs::jobs(&database)?,
            database,
            blueprints: Arc::default(),
            beside: None,
            gates: Arc::new(Semaphore::new(GATES_AT_ONCE)),
            lock: Arc::new(lock),
        })
    }

    /// The same store, whose decisions write this too.
    pub(super) fn with(&self, beside: Arc<Beside>) -> Self {
        Self {
            database: Arc::clone(&self.database),
            jobs: self.jobs.clone(),
            blueprints: Arc::clone(&self.blueprints),
            beside: Some(beside),
            gates: Arc::clone(&self.gates),
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

pub(crate) async fn connect(options: &SqliteConnectOptions) -> Result<Connection, OpenError> {
    sqlite::connect(options).await.map_err(OpenError::Sqlite)
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
