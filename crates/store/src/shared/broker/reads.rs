//! Reads attempts and one resource without a decision. `list.rs` lists resources.

use slipway_app::ports::store::CorruptRow;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::{ProvisionedResourceId, ResourceId};
use sqlx::Row as _;

use super::{Connection, snapshot};
use crate::blueprints::Blueprints;
use crate::failure::Failure;
use crate::id_list::IdList;

/// A page of attempts, each a snapshot or an unreadable row.
pub(crate) type Snapshots = Vec<Result<ResourceSnapshot, CorruptRow>>;

pub(crate) async fn attempt_load(
    connection: &mut Connection,
    (blueprints, ids): (&Blueprints, &[ProvisionedResourceId]),
) -> Result<Snapshots, Failure> {
    let loaded = snapshot::load(blueprints, connection, ids).await?;
    Ok(loaded
        .into_iter()
        .map(|(id, loaded)| {
            loaded.map_err(|fault| CorruptRow {
                id: id.as_uuid(),
                resource_id: None,
                reason: fault.to_string(),
                seam: fault.seam,
            })
        })
        .collect())
}

/// The current attempts of these resources; unknown ids are left out.
pub(crate) async fn resource_load(
    connection: &mut Connection,
    (blueprints, ids): (&Blueprints, &[ResourceId]),
) -> Result<Snapshots, Failure> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let list: IdList = ids.iter().map(|id| id.as_uuid()).collect();
    let current = sqlx::query(sql!(
        "SELECT a.id FROM provisioned_resources a WHERE a.resource_id ",
        (one_of "$1"),
        " AND NOT EXISTS (SELECT 1 FROM provisioned_resources b \
         WHERE b.resource_id = a.resource_id AND b.attempt > a.attempt AND b.in_use <> 0) \
         AND a.in_use <> 0 ORDER BY a.id"
    ))
    .bind(list)
    .fetch_all(&mut *connection)
    .await?;
    let attempts = current.iter().map(|row| row.try_get("id").map(ProvisionedResourceId::new));
    let attempts: Vec<_> = attempts.collect::<Result<_, _>>()?;
    let loaded = attempt_load(connection, (blueprints, &attempts)).await?;
    Ok(loaded.into_iter().map(|one| one.map(ResourceSnapshot::shown)).collect())
}

pub(crate) async fn resource_fetch(
    connection: &mut Connection,
    (blueprints, id): (&Blueprints, ResourceId),
) -> Result<Option<ResourceSnapshot>, Failure> {
    let current = sqlx::query(
        "SELECT id FROM provisioned_resources WHERE resource_id = $1 AND in_use <> 0 \
         ORDER BY attempt DESC LIMIT 1",
    )
    .bind(id.as_uuid())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(current) = current else {
        return Ok(None);
    };
    let attempt = ProvisionedResourceId::new(current.try_get("id")?);
    let loaded = snapshot::load(blueprints, connection, &[attempt]).await?;
    loaded
        .into_iter()
        .next()
        .map(|(id, loaded)| {
            let loaded = loaded.map(ResourceSnapshot::shown);
            loaded.map_err(|fault| Failure::Corrupt { id: id.as_uuid(), fault })
        })
        .transpose()
}
