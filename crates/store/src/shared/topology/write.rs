//! Dispatches each write of workspaces to the function of its table.

use slipway_core::Refusal;
use slipway_core::ids::GroupId;
use slipway_core::topology::TopologyWrite;
use slipway_core::topology::group::Group;

use super::table::{insert, update};
use super::{Connection, group, workspace, writes};
use crate::failure::Failure;

pub(crate) async fn apply(
    connection: &mut Connection,
    write: &TopologyWrite,
) -> Result<(), Failure> {
    match write {
        TopologyWrite::WorkspaceInsert(row) => {
            insert(connection, &workspace::INSERT, row, "name").await
        }
        TopologyWrite::WorkspaceUpdate(row) => update(connection, &workspace::UPDATE, row).await,
        TopologyWrite::Suspend(id) => workspace::suspend(connection, *id).await,
        TopologyWrite::GroupInsert(row) => insert(connection, &group::INSERT, row, "name").await,
        TopologyWrite::GroupUpdate(row) => {
            group::UPDATE.write_guarded(connection, &[row], stale).await
        }
        TopologyWrite::GroupScale(row) => {
            group::SCALE.write_guarded(connection, &[row], stale).await
        }
        TopologyWrite::GroupRemove(id) => {
            sqlx::query("DELETE FROM workspace_groups WHERE id = $1")
                .bind(id.as_uuid())
                .execute(connection)
                .await?;
            Ok(())
        }
    }
}

fn stale(row: &Group) -> Refusal {
    writes::stale(GroupId::KIND, row.id, row.revision)
}
