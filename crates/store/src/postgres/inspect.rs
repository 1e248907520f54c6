//! Inspects a server: its version, its durability, whether it accepts writes.

use sqlx::{Connection as _, Row as _};

use super::Connection;
use super::shared::schema;
use crate::config::OpenError;
use crate::inspect::{Inspection, Setting};
use crate::migration::MigrationError;

pub(crate) const HAS_SCHEMA: &str = "SELECT to_regclass('schema_migrations') IS NOT NULL AS there";

/// Each with the value with which an acknowledged commit may be lost.
const DURABILITY: [(&str, &str); 3] =
    [("fsync", "off"), ("full_page_writes", "off"), ("synchronous_commit", "off")];

pub(crate) async fn inspect(mut connection: Connection) -> Result<Inspection, OpenError> {
    let seen = read_inspection(&mut connection).await;
    // The connection wrote nothing, so an error of closing it loses nothing.
    let _ = connection.close().await;
    seen.map_err(|error| MigrationError::from(error).into())
}

async fn read_inspection(connection: &mut Connection) -> Result<Inspection, sqlx::Error> {
    let version = setting(connection, "server_version").await?;
    let mut durability = Vec::new();
    for (name, lossy) in DURABILITY {
        let value = setting(connection, name).await?;
        durability.push(Setting { name, unsafe_value: value == lossy, value });
    }
    let schema = schema::read_inspection(connection).await?;
    let unwritable = match schema {
        Some(_) => write_nothing(connection).await.err().map(|error| error.to_string()),
        None => may_create(connection).await?,
    };
    let now = schema::now(connection).await?;
    Ok(Inspection { version: format!("PostgreSQL {version}"), schema, unwritable, durability, now })
}

async fn setting(connection: &mut Connection, name: &str) -> Result<String, sqlx::Error> {
    let row = sqlx::query("SELECT current_setting($1) AS value");
    row.bind(name).fetch_one(connection).await?.try_get("value")
}

/// Writes no row, yet a read-only server refuses it.
async fn write_nothing(connection: &mut Connection) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE schema_migrations SET name = name WHERE version < 0")
        .execute(connection)
        .await?;
    Ok(())
}

/// Why the server would refuse the first migration, if it would.
async fn may_create(connection: &mut Connection) -> Result<Option<String>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS allowed, \
         current_setting('transaction_read_only') = 'on' AS read_only",
    )
    .fetch_one(connection)
    .await?;
    let (allowed, read_only): (bool, bool) = (row.try_get("allowed")?, row.try_get("read_only")?);
    Ok(if read_only {
        Some("the server is read-only".to_owned())
    } else if !allowed {
        Some("the role may not create tables".to_owned())
    } else {
        None
    })
}
