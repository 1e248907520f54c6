//! The table of clouds.

use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::catalog::Name;
use slipway_core::catalog::cloud::{Cloud, Endpoint};
use slipway_core::catalog::snapshot::CloudSnapshot;
use slipway_core::ids::{CloudId, DeletionId, Revision};
use sqlx::types::Json;
use uuid::Uuid;

use super::page::{after, as_id, count, fetch_one, fetch_page, now, taken};
use super::transaction::Load;
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

macro_rules! select {
    () => {
        "SELECT id, revision, name, provider, endpoint, deletion_id, deleted_at, created_at, \
         updated_at FROM clouds "
    };
}

macro_rules! live {
    ($lock:tt) => {
        concat!(
            select!(),
            "WHERE (name = $1 OR id = $2) AND deleted_at IS NULL ORDER BY id LIMIT 1",
            sql!($lock)
        )
    };
}

const LIVE_FOR_UPDATE: &str = live!(for_update);

/// The live cloud of a reference, locked for share.
pub(crate) async fn share(
    connection: &mut Connection,
    reference: &str,
) -> Result<Option<Cloud>, Failure> {
    find(connection, live!(for_share), reference).await
}

/// A live cloud by its name or id.
pub(crate) struct ByReference<'a>(pub(crate) &'a str);

impl Load for ByReference<'_> {
    type Snapshot = CloudSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<CloudSnapshot, Failure> {
        let cloud = find(connection, LIVE_FOR_UPDATE, self.0).await?;
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
}

async fn find(
    connection: &mut Connection,
    statement: &'static str,
    reference: &str,
) -> Result<Option<Cloud>, Failure> {
    let query = sqlx::query(statement).bind(reference).bind(as_id(reference));
    fetch_one(connection, query, "id", cloud).await
}

pub(crate) async fn fetch(
    connection: &mut Connection,
    (reference, show_deleted): (&str, bool),
) -> Result<Option<Cloud>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE (name = $1 AND deleted_at IS NULL) OR (id = $2 AND ($3 OR deleted_at IS NULL))"
    ))
    .bind(reference)
    .bind(as_id(reference))
    .bind(show_deleted);
    fetch_one(connection, query, "id", cloud).await
}

pub(crate) async fn list(
    connection: &mut Connection,
    (page, show_deleted): (Page<CloudId>, bool),
) -> Result<Listed<Cloud>, Failure> {
    let query = sqlx::query(concat!(
        select!(),
        "WHERE id > $1 AND ($2 OR deleted_at IS NULL) ORDER BY id LIMIT $3"
    ))
    .bind(after(page))
    .bind(show_deleted)
    .bind(i64::from(page.limit));
    fetch_page(connection, query, (CloudId::KIND, "id"), page, cloud).await
}

fn cloud(row: &Row) -> Result<Cloud, Fault> {
    Ok(Cloud {
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

pub(crate) async fn insert(connection: &mut Connection, cloud: &Cloud) -> Result<(), Failure> {
    let inserted = sqlx::query(
        "INSERT INTO clouds (id, name, provider, endpoint, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
    )
    .bind(cloud.id.as_uuid())
    .bind(cloud.name.as_str())
    .bind(&cloud.provider)
    .bind(Json(cloud.endpoint.as_map()))
    .bind(Micros::from(cloud.created_at))
    .bind(Micros::from(cloud.updated_at))
    .execute(connection)
    .await?
    .rows_affected();
    writes::one_row(inserted, || taken("name", cloud.name.as_str()))
}

pub(crate) async fn update(connection: &mut Connection, cloud: &Cloud) -> Result<(), Failure> {
    let updated = sqlx::query(sql!(
        "UPDATE clouds SET endpoint = $3, deletion_id = $4, deleted_at = $5, \
         revision = revision + 1, updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE id = $1 AND revision = $2"
    ))
    .bind(cloud.id.as_uuid())
    .bind(cloud.revision.0)
    .bind(Json(cloud.endpoint.as_map()))
    .bind(cloud.deletion_id.map(|id| id.as_uuid()))
    .bind(writes::optional(cloud.deleted_at))
    .execute(connection)
    .await?
    .rows_affected();
    writes::one_row(updated, || writes::stale(CloudId::KIND, cloud.id, cloud.revision))
}
