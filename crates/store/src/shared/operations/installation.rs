//! The identity of this installation: generated once, when the database was
//! created. Every object that Slipway creates outside carries it.

use slipway_core::ids::InstallationId;
use sqlx::Row as _;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;

/// Generates the id if there is none. Several replicas may start at once; one
/// of them inserts, the others find it.
pub(crate) async fn ensure(connection: &mut Connection) -> Result<(), sqlx::Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| sqlx::Error::Configuration(Box::new(error)))?;
    let id: Uuid = uuid::Builder::from_random_bytes(random).into_uuid();
    sqlx::query("INSERT INTO installation (singleton, id) VALUES (1, $1) ON CONFLICT DO NOTHING")
        .bind(id)
        .execute(connection)
        .await?;
    Ok(())
}

pub(crate) async fn read(connection: &mut Connection, (): ()) -> Result<InstallationId, Failure> {
    Ok(fetch(connection).await?)
}

pub(crate) async fn fetch(connection: &mut Connection) -> Result<InstallationId, sqlx::Error> {
    let row = sqlx::query("SELECT id FROM installation").fetch_one(connection).await?;
    Ok(InstallationId::new(row.try_get("id")?))
}
