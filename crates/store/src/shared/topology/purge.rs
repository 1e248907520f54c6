//! Purging a workspace: its groups, then its row. Its servers are resources with deletions of
//! their own, whose parent it is: they are purged before it.

use slipway_core::subject::SubjectKind;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;

pub(crate) async fn row(
    connection: &mut Connection,
    kind: SubjectKind,
    id: Uuid,
) -> Result<u64, Failure> {
    if kind != SubjectKind::Workspace {
        return Ok(0);
    }
    let groups = sqlx::query("DELETE FROM workspace_groups WHERE workspace_id = $1")
        .bind(id)
        .execute(&mut *connection)
        .await?;
    let row = sqlx::query("DELETE FROM workspaces WHERE id = $1 AND deleted_at IS NOT NULL")
        .bind(id)
        .execute(connection)
        .await?;
    Ok(groups.rows_affected() + row.rows_affected())
}
