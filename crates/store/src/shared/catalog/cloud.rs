//! The table of clouds.

use slipway_core::catalog::Name;
use slipway_core::catalog::cloud::{Cloud, Endpoint};
use slipway_core::catalog::rules::cloud::CloudSnapshot;
use slipway_core::ids::{CloudId, DeletionId, Revision};
use sqlx::types::Json;
use uuid::Uuid;

use super::page::{count, now};
use super::table::{self, Table};
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

impl Table for Cloud {
    queries!(
        marked,
        "clouds",
        "name",
        "id, revision, name, provider, endpoint, deletion_id, deleted_at, created_at, updated_at"
    );

    async fn load(connection: &mut Connection, key: &str) -> Result<CloudSnapshot, Failure> {
        let cloud = table::lock::<Self>(connection, key).await?;
        // A new credential locks the cloud for share, so under the lock for
        // update this count cannot change.
        let credentials = match &cloud {
            Some(cloud) => {
                let statement = "SELECT count(*) AS found FROM cloud_credentials \
                     WHERE cloud_id = $1 AND deleted_at IS NULL";
                count(connection, statement, cloud.id.as_uuid()).await?
            }
            None => 0,
        };
        Ok(CloudSnapshot { now: now(connection).await?, cloud, credentials })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            id: CloudId::new(rows::get(row, "id")?),
            name: Name::from_stored(rows::get(row, "name")?),
            provider: rows::get(row, "provider")?,
            endpoint: Endpoint::from_stored(rows::json(row, "endpoint")?),
            revision: Revision(rows::get(row, "revision")?),
            deletion_id: rows::get::<Option<Uuid>>(row, "deletion_id")?.map(DeletionId::new),
            deleted_at: rows::time_or_null(row, "deleted_at")?,
            created_at: rows::time(row, "created_at")?,
            updated_at: rows::time(row, "updated_at")?,
        })
    }
}

pub(crate) async fn insert(connection: &mut Connection, cloud: &Cloud) -> Result<(), Failure> {
    let query = sqlx::query(
        "INSERT INTO clouds (id, name, provider, endpoint, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
    )
    .bind(cloud.id.as_uuid())
    .bind(cloud.name.as_str())
    .bind(&cloud.provider)
    .bind(Json(cloud.endpoint.as_map()))
    .bind(Micros::from(cloud.created_at))
    .bind(Micros::from(cloud.updated_at));
    table::insert(connection, query, "name", cloud.name.as_str()).await
}

pub(crate) async fn update(connection: &mut Connection, cloud: &Cloud) -> Result<(), Failure> {
    let statement = update_sql!("clouds", "endpoint = $3, deletion_id = $4, deleted_at = $5");
    let query = table::at_revision(statement, cloud)
        .bind(Json(cloud.endpoint.as_map()))
        .bind(cloud.deletion_id.map(|id| id.as_uuid()))
        .bind(writes::optional(cloud.deleted_at));
    table::write(connection, query, cloud).await
}
