//! Looking at a file that another process may have open.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::{Connection, schema};
use crate::config::OpenError;
use crate::inspect::{Inspection, Setting};

pub(crate) const HAS_SCHEMA: &str = "SELECT count(*) > 0 AS there FROM sqlite_schema \
     WHERE type = 'table' AND name = 'schema_migrations'";

/// A control plane writes for milliseconds at a time.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn inspect(file: &Path) -> Result<Inspection, OpenError> {
    let mut connection = open(file).await.map_err(OpenError::Sqlite)?;
    let seen = look(&mut connection).await.map_err(OpenError::Sqlite);
    // Nothing is lost with a connection that wrote nothing.
    let _ = connection.close().await;
    seen
}

/// As it is: no pragma that would change the file.
async fn open(file: &Path) -> Result<Connection, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(false);
    options.busy_timeout(PATIENCE).connect().await
}

async fn look(connection: &mut Connection) -> Result<Inspection, sqlx::Error> {
    let row = sqlx::query("SELECT sqlite_version() AS version").fetch_one(&mut *connection).await?;
    let version: String = row.try_get("version")?;
    let journal: String =
        sqlx::query("PRAGMA journal_mode").fetch_one(&mut *connection).await?.try_get(0)?;
    let schema = schema::look(connection).await?;
    let unwritable = match schema {
        Some(_) => schema::write_nothing(connection).await.err().map(|error| error.to_string()),
        None => None,
    };
    let durability = vec![
        Setting { name: "journal_mode", unsafe_value: journal != "wal", value: journal },
        // Each connection of ours sets it; it is no property of the file.
        Setting { name: "synchronous", value: "full".to_owned(), unsafe_value: false },
    ];
    let now = schema::now(connection).await?;
    Ok(Inspection { version: format!("SQLite {version}"), schema, unwritable, durability, now })
}
