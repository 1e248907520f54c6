//! The table of clouds.

use slipway_core::catalog::Name;
use slipway_core::catalog::cloud::{Cloud, CloudSnapshot, Endpoint};
use slipway_core::ids::{CloudId, DeletionId, Revision};
use uuid::Uuid;

use super::page::{count, now};
use super::row_set::RowSet;
use super::table::{self, Marks, Table};
use super::{Connection, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;

impl Table for Cloud {
    queries!(
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

pub(crate) const MARKS: Marks = marks!("clouds", "name", "NULL");

pub(crate) const INSERT: RowSet<Cloud> = insert_rows!(guarded, "clouds", |cloud: &Cloud| {
    id: uuid = cloud.id,
    name: text = cloud.name,
    provider: text = cloud.provider,
    endpoint: json = cloud.endpoint.as_map(),
    created_at: time = cloud.created_at,
    updated_at: time = cloud.updated_at,
});

pub(crate) const UPDATE: RowSet<Cloud> = update_rows!(dated, "clouds" by id, |cloud: &Cloud| {
    endpoint: json = cloud.endpoint.as_map(),
});
