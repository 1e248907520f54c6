//! Copies a database that is in use, and turns a copy into a database.

use std::path::Path;
use std::time::Duration;

use slipway_app::operations::port::ControlRule;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::Connection;
use super::shared::operations::{control, installation};
use super::shared::transaction::Decision;
use super::shared::{migrate, schema};
use crate::backup::{BackupError, Beside, FORMAT, Manifest};
use crate::config::OpenError;
use crate::migration::MigrationError;

/// A backup only reads; it waits only while the file is switched to another journal mode.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The table that a backup has and a database has not.
const BESIDE: &str = "CREATE TABLE slipway_backup (
    name TEXT NOT NULL PRIMARY KEY,
    content BLOB NOT NULL
) STRICT";

const MANIFEST: &str = "manifest.json";

pub(crate) async fn write(
    database: &Path,
    into: &Path,
    slipway: &str,
    beside: &[Beside],
) -> Result<Manifest, BackupError> {
    // Read-only, so that even the last process to close the file does not
    // checkpoint the log into it: a backup leaves its source unchanged.
    let options = SqliteConnectOptions::new().filename(database).read_only(true);
    let mut source = options.busy_timeout(TIMEOUT).connect().await?;
    // One read transaction: writers continue beside it (WAL), and the copy does
    // not contain what they commit meanwhile.
    let copied = sqlx::query("VACUUM INTO $1")
        .bind(into.to_string_lossy().into_owned())
        .execute(&mut source)
        .await;
    // The source was only read, so an error of closing it changes nothing.
    let _ = source.close().await;
    copied?;

    let mut copy = alone(into).await?;
    let schema =
        schema::read_inspection(&mut copy).await?.ok_or_else(|| BackupError::NotABackup {
            path: database.to_path_buf(),
            problem: "the database was never used by a control plane".to_owned(),
        })?;
    if let Some(refused @ MigrationError::MadeBeforeFirstVersion { .. }) = schema.refused {
        return Err(OpenError::from(refused).into());
    }
    let manifest = Manifest {
        format: FORMAT,
        slipway: slipway.to_owned(),
        schema_version: schema.applied,
        installation_id: installation::fetch(&mut copy).await?.to_string(),
        taken_at: schema::now(&mut copy).await?.to_string(),
    };
    let mut transaction = copy.begin().await?;
    sqlx::raw_sql(BESIDE).execute(&mut *transaction).await?;
    put(&mut transaction, MANIFEST, &json(&manifest)).await?;
    for file in beside {
        put(&mut transaction, &file.name, &file.content).await?;
    }
    transaction.commit().await?;
    assert_intact(&mut copy, into).await?;
    copy.close().await?;
    Ok(manifest)
}

pub(crate) async fn check(path: &Path) -> Result<Manifest, BackupError> {
    // This creates not even a lock file beside a backup, which may be on a
    // read-only medium.
    let options = SqliteConnectOptions::new().filename(path).immutable(true).read_only(true);
    let invalid = |problem: String| BackupError::NotABackup { path: path.to_path_buf(), problem };
    let mut connection = options.connect().await.map_err(|error| invalid(error.to_string()))?;
    let found = sqlx::query("SELECT content FROM slipway_backup WHERE name = $1")
        .bind(MANIFEST)
        .fetch_one(&mut connection)
        .await
        .map_err(|error| invalid(error.to_string()))?;
    let manifest: Manifest = serde_json::from_slice(&found.try_get::<Vec<u8>, _>("content")?)
        .map_err(|error| invalid(error.to_string()))?;
    if manifest.format > FORMAT {
        return Err(invalid(format!(
            "it has format {}, and this binary reads up to {FORMAT}; use a newer one",
            manifest.format
        )));
    }
    assert_intact(&mut connection, path).await?;
    let schema = schema::read_inspection(&mut connection).await?;
    if let Some(refused) = schema.and_then(|schema| schema.refused) {
        return Err(OpenError::from(refused).into());
    }
    // It was only read.
    let _ = connection.close().await;
    Ok(manifest)
}

pub(crate) async fn prepare(
    staged: &Path,
    rule: &mut ControlRule<'_>,
) -> Result<Vec<Beside>, BackupError> {
    let mut connection = alone(staged).await?;
    let rows = sqlx::query("SELECT name, content FROM slipway_backup WHERE name <> $1")
        .bind(MANIFEST)
        .fetch_all(&mut connection)
        .await?;
    let beside = rows
        .iter()
        .map(|row| Ok(Beside { name: row.try_get("name")?, content: row.try_get("content")? }))
        .collect::<Result<Vec<_>, sqlx::Error>>()?;
    sqlx::raw_sql("PRAGMA secure_delete = on; DROP TABLE slipway_backup")
        .execute(&mut connection)
        .await?;
    migrate::migrate_up(&mut connection).await.map_err(OpenError::from)?;
    installation::ensure(&mut connection)
        .await
        .map_err(|error| OpenError::from(MigrationError::from(error)))?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let mut decision = Decision { key: control::Installation, rule, beside: None };
    let decided = decision.in_txn(&mut transaction).await;
    decided.map_err(slipway_app::ports::store::Error::from)?;
    transaction.commit().await?;
    assert_intact(&mut connection, staged).await?;
    connection.close().await?;
    Ok(beside)
}

pub(crate) async fn checkpoint(database: &Path) -> Result<(), BackupError> {
    let connection = alone(database).await?;
    connection.close().await?;
    Ok(())
}

/// A connection to a file that no other process has open. The rollback journal
/// disappears with the connection, so that one file is left.
async fn alone(file: &Path) -> Result<Connection, sqlx::Error> {
    SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Delete)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(TIMEOUT)
        .connect()
        .await
}

async fn put(connection: &mut Connection, name: &str, content: &[u8]) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO slipway_backup (name, content) VALUES ($1, $2)")
        .bind(name)
        .bind(content)
        .execute(connection)
        .await?;
    Ok(())
}

/// SQLite reads every page and every index for this.
async fn assert_intact(connection: &mut Connection, path: &Path) -> Result<(), BackupError> {
    let damaged = |problem: String| BackupError::Damaged { path: path.to_path_buf(), problem };
    let rows = sqlx::query("PRAGMA integrity_check(3)")
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| damaged(error.to_string()))?;
    let said = rows
        .iter()
        .map(|row| row.try_get::<String, _>(0))
        .collect::<Result<Vec<_>, sqlx::Error>>()?;
    if said != ["ok"] {
        return Err(damaged(said.join("; ")));
    }
    let orphans = sqlx::query("PRAGMA foreign_key_check").fetch_all(connection).await?;
    if orphans.is_empty() {
        Ok(())
    } else {
        Err(damaged(format!("{} rows refer to rows that are not there", orphans.len())))
    }
}

fn json(manifest: &Manifest) -> Vec<u8> {
    // A struct of numbers and texts always serialises to JSON.
    serde_json::to_vec(manifest).unwrap_or_default()
}
