//! Dispatches each write of the placement to the function of its table. A
//! decision writes one row, so each is a statement of its own.

use slipway_core::placement::PlacementWrite;

use super::table::{insert, update};
use super::{Connection, cluster, definitions};
use crate::failure::Failure;

pub(crate) async fn apply(
    connection: &mut Connection,
    write: &PlacementWrite,
) -> Result<(), Failure> {
    match write {
        PlacementWrite::ClusterInsert(row) => {
            insert(connection, &cluster::INSERT, row, "name").await
        }
        PlacementWrite::ClusterUpdate(row) => update(connection, &cluster::UPDATE, row).await,
        PlacementWrite::ClusterAssignmentInsert(row) => {
            cluster::ASSIGNMENT_INSERT.write(connection, &[row]).await
        }
        PlacementWrite::ClusterAssignmentUpdate(row) => {
            cluster::assignment_update(connection, row).await
        }
        PlacementWrite::ClusterAssignmentDelete(row) => {
            cluster::assignment_delete(connection, row).await
        }
        PlacementWrite::DefinitionsInsert(row) => definitions::insert(connection, row).await,
        PlacementWrite::DefinitionsUpdate(row) => definitions::update(connection, row).await,
    }
}
