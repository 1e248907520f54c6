//! What servers wait for, read for many of them at once, and which workspaces have something
//! to do.

use std::collections::{BTreeSet, HashMap};

use slipway_core::ids::{GroupId, WorkspaceId};
use slipway_core::topology::next::{Waiting, waits_for};
use sqlx::Row as _;
use uuid::Uuid;

use super::{Connection, group};
use crate::failure::Failure;
use crate::id_list::IdList;

/// What the servers of these groups wait for; a group that waits for nothing is left out.
pub(crate) async fn of_groups(
    connection: &mut Connection,
    workspaces: BTreeSet<WorkspaceId>,
) -> Result<HashMap<GroupId, Vec<Waiting>>, sqlx::Error> {
    if workspaces.is_empty() {
        return Ok(HashMap::new());
    }
    let workspaces: Vec<WorkspaceId> = workspaces.into_iter().collect();
    let groups = group::of(connection, &workspaces).await?;
    if groups.iter().all(|group| group.spec.depends_on.is_empty()) {
        return Ok(HashMap::new());
    }
    let list: IdList = groups.iter().map(|group| group.id.as_uuid()).collect();
    let found = sqlx::query(sql!(
        "SELECT r.group_id, count(*) AS found FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id AND a.in_use <> 0 \
         AND a.status = 'Ready' \
         WHERE r.deleted_at IS NULL AND r.deletion_id IS NULL AND r.group_id ",
        (one_of "$1"),
        " GROUP BY r.group_id"
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    let mut ready: HashMap<GroupId, u32> = HashMap::new();
    for row in &found {
        let (id, count): (Uuid, i64) = (row.try_get("group_id")?, row.try_get("found")?);
        ready.insert(GroupId::new(id), u32::try_from(count).unwrap_or(u32::MAX));
    }
    let ready = |id: GroupId| ready.get(&id).copied().unwrap_or(0);
    let waiting = groups.iter().map(|group| (group.id, waits_for(group, &groups, ready)));
    Ok(waiting.filter(|(_, waits)| !waits.is_empty()).collect())
}

/// Live workspaces whose groups have too few or too many servers, or servers that wait, in the
/// order of their ids, after this one.
pub(crate) async fn moving(
    connection: &mut Connection,
    (after, limit): (Option<WorkspaceId>, u32),
) -> Result<Vec<WorkspaceId>, Failure> {
    let found = sqlx::query(
        "SELECT w.id FROM workspaces w WHERE w.deleted_at IS NULL AND w.deletion_id IS NULL \
         AND w.paused_at IS NULL AND w.id > $1 AND EXISTS (SELECT 1 FROM workspace_groups g \
            WHERE g.workspace_id = w.id AND (g.dropped = 1 \
            OR (SELECT count(*) FROM resources r LEFT JOIN deletions d ON d.id = r.deletion_id \
                WHERE r.group_id = g.id AND r.deleted_at IS NULL \
                AND (d.kind IS NULL OR d.kind = 'provisioned_resource')) NOT BETWEEN \
               CASE WHEN g.max_count < g.wanted OR g.max_count < g.min_count THEN g.max_count \
                    WHEN g.wanted > g.min_count THEN g.wanted ELSE g.min_count END \
               AND CASE WHEN g.wanted > g.min_count THEN g.wanted ELSE g.min_count END \
            OR EXISTS (SELECT 1 FROM resources r JOIN provisioned_resources a \
                ON a.resource_id = r.id AND a.status = 'Pending' \
                WHERE r.group_id = g.id AND r.deleted_at IS NULL) \
            OR EXISTS (SELECT 1 FROM blockers b WHERE b.subject_kind = 'workspace' \
                AND b.subject_id = w.id))) \
         ORDER BY w.id LIMIT $2",
    )
    .bind(after.map(WorkspaceId::as_uuid).unwrap_or_default())
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    Ok(found
        .iter()
        .map(|row| row.try_get("id").map(WorkspaceId::new))
        .collect::<Result<_, sqlx::Error>>()?)
}
