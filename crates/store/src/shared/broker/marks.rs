//! The marks of deletions on resources.

use slipway_core::ids::{DeletionId, ProjectId, ProvisionedResourceId};
use sqlx::Row as _;

use super::Connection;
use super::table::{self, Marks};
use crate::failure::Failure;

pub(crate) const MARKS: Marks = marks!(
    "resources",
    "handle",
    "project_id",
    "project_id = (SELECT own.project_id FROM resources own WHERE own.id = $2)"
);

/// Marks the live resources of a project that no deletion has marked. The caller has locked
/// the project, so none is added meanwhile.
pub(crate) async fn mark_all(
    connection: &mut Connection,
    project: ProjectId,
    deletion: DeletionId,
) -> Result<(), Failure> {
    sqlx::query(sql!(
        "UPDATE resources SET deletion_id = $2, revision = revision + 1, updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE id IN (SELECT id FROM resources WHERE project_id = $1 \
         AND deleted_at IS NULL AND deletion_id IS NULL ORDER BY id",
        for_update,
        ")"
    ))
    .bind(project.as_uuid())
    .bind(deletion.as_uuid())
    .execute(connection)
    .await?;
    Ok(())
}

/// Current attempts of live resources that nobody has begun to take down for good: those
/// outside the teardown phases, and those that a retry takes down. One that a deletion of
/// its own will take down is left out.
pub(crate) async fn staying(
    connection: &mut Connection,
    (project, limit): (ProjectId, u32),
) -> Result<Vec<ProvisionedResourceId>, Failure> {
    let found = sqlx::query(
        "SELECT a.id FROM resources r JOIN provisioned_resources a ON a.resource_id = r.id \
         AND a.attempt = (SELECT max(n.attempt) FROM provisioned_resources n \
            WHERE n.resource_id = r.id AND n.in_use <> 0) \
         LEFT JOIN deletions d ON d.id = r.deletion_id \
         WHERE r.project_id = $1 AND r.deleted_at IS NULL \
         AND (d.id IS NULL OR d.kind = 'provisioned_resource' OR (d.kind = 'project' \
            AND a.status NOT IN ('Deregistering', 'Deprovisioning', 'Deleted'))) \
         ORDER BY r.id LIMIT $2",
    )
    .bind(project.as_uuid())
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    let ids = found.iter().map(|row| row.try_get("id").map(ProvisionedResourceId::new));
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Locks the resources that a deletion marked, and answers their current attempts.
pub(crate) async fn lock_members(
    connection: &mut Connection,
    deletion: DeletionId,
) -> Result<Vec<ProvisionedResourceId>, Failure> {
    sqlx::query(sql!("SELECT id FROM resources WHERE deletion_id = $1 ORDER BY id", for_update))
        .bind(deletion.as_uuid())
        .fetch_all(&mut *connection)
        .await?;
    let found = sqlx::query(
        "SELECT a.id FROM resources r JOIN provisioned_resources a ON a.resource_id = r.id \
         AND a.attempt = (SELECT max(n.attempt) FROM provisioned_resources n \
            WHERE n.resource_id = r.id AND n.in_use <> 0) WHERE r.deletion_id = $1 ORDER BY r.id",
    )
    .bind(deletion.as_uuid())
    .fetch_all(connection)
    .await?;
    let ids = found.iter().map(|row| row.try_get("id").map(ProvisionedResourceId::new));
    Ok(ids.collect::<Result<_, _>>()?)
}
