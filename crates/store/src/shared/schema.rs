//! Reads the schema version of a database without changing anything.

use slipway_core::Timestamp;
use sqlx::Row as _;

use super::{Connection, HAS_SCHEMA, migrate};
use crate::inspect::Schema;
use crate::micros::Micros;
use crate::migration::latest_version;

/// None if no migration ever ran.
pub(crate) async fn read_inspection(
    connection: &mut Connection,
) -> Result<Option<Schema>, sqlx::Error> {
    let there: bool =
        sqlx::query(HAS_SCHEMA).fetch_one(&mut *connection).await?.try_get("there")?;
    if !there {
        return Ok(None);
    }
    let applied = migrate::applied(connection).await?;
    Ok(Some(Schema {
        applied: applied.iter().map(|applied| applied.version).max().unwrap_or(0),
        known: latest_version(),
        refused: migrate::check(&applied).err(),
    }))
}

pub(crate) async fn now(connection: &mut Connection) -> Result<Timestamp, sqlx::Error> {
    let row = sqlx::query(sql!("SELECT ", now, " AS now")).fetch_one(connection).await?;
    Ok(row.try_get::<Micros, _>("now")?.into())
}
