//! What the purge of a deletion does to resources and attempts.

use slipway_core::deletion::record::Deletion;
use slipway_core::ids::DeletionId;
use slipway_core::subject::SubjectKind;
use sqlx::Row as _;
use uuid::Uuid;

use super::{Connection, deletion, nodes};
use crate::failure::Failure;
use crate::id_list::IdList;

/// Whether resources are left that went with this deletion.
pub(crate) async fn has_members(
    connection: &mut Connection,
    deletion: DeletionId,
) -> Result<bool, Failure> {
    let found = sqlx::query(
        "SELECT id FROM resources WHERE deletion_id = $1 AND deleted_at IS NOT NULL LIMIT 1",
    )
    .bind(deletion.as_uuid())
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

/// The next member resources, locked, and attempts to remove: theirs, `limit` at most, or
/// the one that a retry took down.
pub(crate) async fn next(
    connection: &mut Connection,
    deletion: &Deletion,
    limit: u32,
) -> Result<(IdList, IdList), Failure> {
    let resources = sqlx::query(sql!(
        "SELECT id FROM resources WHERE deletion_id = $1 AND deleted_at IS NOT NULL \
         ORDER BY id LIMIT $2",
        for_update
    ))
    .bind(deletion.id.as_uuid())
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    let resources = ids(&resources)?;
    let attempts = match deletion.target.kind {
        SubjectKind::ProvisionedResource if resources.0.is_empty() => {
            sqlx::query(sql!(
                "SELECT id FROM resources WHERE id = (SELECT a.resource_id \
                 FROM provisioned_resources a WHERE a.id = $1)",
                for_update
            ))
            .bind(deletion.target.id)
            .fetch_optional(&mut *connection)
            .await?;
            sqlx::query("SELECT id FROM provisioned_resources WHERE id = $1")
                .bind(deletion.target.id)
                .fetch_all(connection)
                .await?
        }
        _ => {
            sqlx::query(sql!(
                "SELECT id FROM provisioned_resources WHERE resource_id ",
                (one_of "$1"),
                " ORDER BY id LIMIT $2"
            ))
            .bind(resources.clone())
            .bind(i64::from(limit))
            .fetch_all(connection)
            .await?
        }
    };
    Ok((resources, ids(&attempts)?))
}

fn ids(found: &[super::Row]) -> Result<IdList, sqlx::Error> {
    Ok(IdList(found.iter().map(|row| row.try_get("id")).collect::<Result<Vec<Uuid>, _>>()?))
}

/// Removes these attempts with everything that hangs on them.
pub(crate) async fn attempts(
    connection: &mut Connection,
    attempts: &IdList,
) -> Result<u64, Failure> {
    if attempts.0.is_empty() {
        return Ok(0);
    }
    let mut removed = nodes::purge::of_attempts(connection, attempts).await?;
    removed +=
        deletion::purge::forget(connection, SubjectKind::ProvisionedResource, attempts).await?;
    removed += sqlx::query(sql!("DELETE FROM provisioned_resources WHERE id ", (one_of "$1")))
        .bind(attempts.clone())
        .execute(connection)
        .await?
        .rows_affected();
    Ok(removed)
}

/// Removes those of these resources that have no attempt left. Without labels a resource
/// has no rows derived from them.
pub(crate) async fn resources(
    connection: &mut Connection,
    resources: &IdList,
) -> Result<u64, Failure> {
    const EMPTY: &str = sql!(
        "SELECT r.id FROM resources r WHERE r.id ",
        (one_of "$1"),
        " AND NOT EXISTS (SELECT 1 FROM provisioned_resources a WHERE a.resource_id = r.id)"
    );
    let empty = sqlx::query(EMPTY).bind(resources.clone()).fetch_all(&mut *connection).await?;
    let empty = ids(&empty)?;
    if empty.0.is_empty() {
        return Ok(0);
    }
    let mut removed = deletion::purge::forget(connection, SubjectKind::Resource, &empty).await?;
    sqlx::query(sql!(
        "UPDATE resources SET labels = '{}' WHERE labels <> '{}' AND id ",
        (one_of "$1")
    ))
    .bind(empty.clone())
    .execute(&mut *connection)
    .await?;
    removed += sqlx::query(sql!("DELETE FROM resources WHERE id ", (one_of "$1")))
        .bind(empty)
        .execute(connection)
        .await?
        .rows_affected();
    Ok(removed)
}
