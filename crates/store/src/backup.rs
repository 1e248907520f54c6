//! A backup of a SQLite database is one SQLite file: the whole database, and
//! one more table with the files beside it (the signing key) and the manifest.
//! PostgreSQL has tools of its own for this.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slipway_app::operations::port::ControlRule;

use crate::config::{OpenError, StoreConfig, Target};
use crate::sqlite;

/// What a backup declares about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the table in the backup; a reader refuses a newer one.
    pub format: u32,
    /// The version of Slipway that made it.
    pub slipway: String,
    pub schema_version: i64,
    pub installation_id: String,
    /// By the database's clock.
    pub taken_at: String,
}

/// The only format there is.
pub(crate) const FORMAT: u32 = 1;

/// A file that belongs to the installation and lies beside the database.
#[derive(Clone, PartialEq, Eq)]
pub struct Beside {
    pub name: String,
    pub content: Vec<u8>,
}

/// The content is a secret.
impl std::fmt::Debug for Beside {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Beside").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(
        "this installation keeps its state in PostgreSQL ({server}), which is backed up and \
         restored with its own tools: `pg_dump --format=custom --file=FILE URL` and `pg_restore \
         --clean --if-exists --single-transaction --dbname=URL FILE`; copy the signing key \
         (signing.pk8 in the data directory) beside it; docs/restore.md has the steps"
    )]
    NotSqlite { server: String },
    #[error("there is no database at {}; name another with --data-dir or --database-url", path.display())]
    NoDatabase { path: PathBuf },
    #[error("{} is not a backup made by `slipway backup`: {problem}", path.display())]
    NotABackup { path: PathBuf, problem: String },
    #[error(
        "{} is damaged: {problem}; nothing was changed, use another backup",
        path.display()
    )]
    Damaged { path: PathBuf, problem: String },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the backup cannot be read or written: {0}")]
    Database(#[from] sqlx::Error),
    #[error("the mode of the restored database cannot be set: {0}")]
    Mode(#[from] slipway_app::ports::store::Error),
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
}

impl BackupError {
    /// The stable code shown beside the text.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotSqlite { .. } => "backup_not_sqlite",
            Self::NoDatabase { .. } => "database_not_found",
            Self::NotABackup { .. } => "backup_invalid",
            Self::Damaged { .. } => "backup_damaged",
            Self::Open(OpenError::Migration(error)) => {
                error.refusal_code().unwrap_or("backup_failed")
            }
            Self::Open(OpenError::InvalidUrl) => "database_url_invalid",
            Self::Open(_) | Self::Database(_) | Self::Mode(_) => "backup_failed",
            Self::Io { .. } => "io_failed",
        }
    }
}

/// The path of the database file. PostgreSQL is refused.
pub fn database_file(config: &StoreConfig) -> Result<PathBuf, BackupError> {
    match config.target()? {
        Target::Sqlite(file) => Ok(file.path),
        Target::Postgres(options) => {
            Err(BackupError::NotSqlite { server: crate::postgres::connect::describe(&options) })
        }
    }
}

/// Writes a consistent copy of the database, with the files beside it, into `into`,
/// which must exist and be empty. The copy is the state of one moment of a database
/// that may be in use; it blocks nobody. The copy is checked before this returns.
pub async fn backup(
    database: &Path,
    into: &Path,
    slipway: &str,
    beside: &[Beside],
) -> Result<Manifest, BackupError> {
    if !database.exists() {
        return Err(BackupError::NoDatabase { path: database.to_path_buf() });
    }
    sqlite::backup::write(database, into, slipway, beside).await
}

/// Reads the manifest of a backup and checks that the file is intact and that this
/// binary can read its schema. Changes nothing.
pub async fn backup_check(path: &Path) -> Result<Manifest, BackupError> {
    sqlite::backup::check(path).await
}

/// Turns `staged`, a copy of a backup, into a database that can be started:
/// extracts the files that were beside it, migrates to this binary's schema and
/// sets the mode by `rule`. It uses one connection, no pool and no write-ahead
/// log, so that the result is one file.
pub async fn restore_prepare(
    staged: &Path,
    rule: &mut ControlRule<'_>,
) -> Result<Vec<Beside>, BackupError> {
    sqlite::backup::prepare(staged, rule).await
}

/// Moves all committed data from the log into the file itself, so that the file
/// can be moved alone. No other process may have it open.
pub async fn checkpoint(database: &Path) -> Result<(), BackupError> {
    sqlite::backup::checkpoint(database).await
}
