//! Workspaces as the loop and people read them, without locks.

use slipway_app::topology::port::{ServerFilter, ServerRow};
use slipway_core::blocker::Blocker;
use slipway_core::ids::{DeletionId, GroupId, ProvisionedResourceId, ResourceId, WorkspaceId};
use slipway_core::subject::Subject;
use slipway_core::topology::group::Group;
use slipway_core::topology::next::Observed;
use slipway_durable::database::End;
use sqlx::Row as _;

use super::{Connection, blockers, group, servers, workspace};
use crate::failure::Failure;

/// A workspace with its groups and servers, as it is now.
pub(crate) async fn observed(
    connection: &mut Connection,
    id: WorkspaceId,
) -> Result<Option<Observed>, Failure> {
    let Some(workspace) = workspace::fetch(connection, id).await? else { return Ok(None) };
    let groups = group::of(connection, &[id]).await?;
    let found = servers::of_workspace(connection, id).await?;
    let taken = servers::names_taken(connection, workspace.project_id, id).await?;
    Ok(Some(Observed { workspace, groups, servers: found, taken }))
}

/// The attempts that show that they wait for a dependency.
pub(crate) async fn pending(
    connection: &mut Connection,
    id: WorkspaceId,
) -> Result<Vec<(ProvisionedResourceId, GroupId)>, Failure> {
    let found = sqlx::query(
        "SELECT a.id, r.group_id FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id AND a.status = 'Pending' \
         JOIN blockers b ON b.subject_kind = 'provisioned_resource' AND b.subject_id = a.id \
         AND b.code = 'waiting_for_dependency' WHERE r.workspace_id = $1 AND r.deleted_at IS NULL ORDER BY a.id",
    )
    .bind(id.as_uuid())
    .fetch_all(connection)
    .await?;
    let pair = |row: &super::Row| {
        let id = ProvisionedResourceId::new(row.try_get("id")?);
        Ok((id, GroupId::new(row.try_get("group_id")?)))
    };
    Ok(found.iter().map(pair).collect::<Result<_, sqlx::Error>>()?)
}

/// The groups of these workspaces, in the order of their names.
pub(crate) async fn groups(
    connection: &mut Connection,
    ids: &[WorkspaceId],
) -> Result<Vec<Group>, Failure> {
    Ok(group::of(connection, ids).await?)
}

/// The names of the servers whose deletions are part of this one.
pub(crate) async fn teardown_members(
    connection: &mut Connection,
    id: DeletionId,
) -> Result<Vec<String>, Failure> {
    let found = sqlx::query(
        "SELECT name FROM deletions WHERE parent_id = $1 AND kind = 'resource' ORDER BY id",
    )
    .bind(id.as_uuid())
    .fetch_all(connection)
    .await?;
    Ok(found.iter().map(|row| row.try_get("name")).collect::<Result<_, sqlx::Error>>()?)
}

/// The blockers of a workspace.
pub(crate) async fn blockers_of(
    connection: &mut Connection,
    id: WorkspaceId,
) -> Result<Vec<Blocker>, Failure> {
    blockers::of_subject(connection, id.into()).await
}

/// Replaces the blockers of a workspace.
pub(crate) async fn block(
    connection: &mut Connection,
    (id, blockers): (WorkspaceId, &[Blocker]),
) -> Result<End<()>, Failure> {
    blockers::replace(connection, &[(Subject::from(id), blockers)]).await?;
    Ok(End::Commit(()))
}

/// Which group and workspace each of these resources belongs to, with the names.
pub(crate) async fn server_rows(
    connection: &mut Connection,
    filter: &ServerFilter,
) -> Result<Vec<ServerRow>, Failure> {
    let found = sqlx::query(
        "SELECT r.id, r.handle, r.group_id, r.workspace_id, w.name AS workspace, \
         g.name AS group_name, r.server_role, a.status \
         FROM resources r JOIN workspaces w ON w.id = r.workspace_id \
         JOIN workspace_groups g ON g.id = r.group_id \
         JOIN provisioned_resources a ON a.resource_id = r.id \
         AND a.attempt = (SELECT max(n.attempt) FROM provisioned_resources n \
            WHERE n.resource_id = r.id AND n.in_use <> 0) \
         WHERE r.deleted_at IS NULL AND ($1 IS NULL OR r.workspace_id = $1) \
         AND ($2 IS NULL OR r.project_id = $2) AND r.id > $3 ORDER BY r.id LIMIT $4",
    )
    .bind(filter.workspace.map(|id| id.as_uuid()))
    .bind(filter.project.map(|id| id.as_uuid()))
    .bind(filter.after.map(ResourceId::as_uuid).unwrap_or_default())
    .bind(i64::from(filter.limit))
    .fetch_all(connection)
    .await?;
    let row = |row: &super::Row| {
        let id = row.try_get("id")?;
        Ok(ServerRow {
            id: ResourceId::new(id),
            name: row.try_get("handle")?,
            workspace_id: WorkspaceId::new(row.try_get("workspace_id")?),
            workspace: row.try_get("workspace")?,
            group: row.try_get("group_name")?,
            role: row.try_get("server_role")?,
            phase: row.try_get::<String, _>("status")?,
        })
    };
    Ok(found.iter().map(row).collect::<Result<_, sqlx::Error>>()?)
}
