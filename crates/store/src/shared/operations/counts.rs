//! The counts of the installation: one scan of each table, and of the rows that are due.

use std::time::Duration;

use slipway_app::operations::port::Counts;
use slipway_core::blocker::BlockerCode;

use super::{Connection, blockers, broker, deletion, nodes};
use crate::failure::Failure;

pub(crate) async fn count(
    connection: &mut Connection,
    unserved_after: Duration,
) -> Result<Counts, Failure> {
    let mut blockers = blockers::count_by_code(connection).await?;
    let unserved = broker::partitions::count_unserved(connection, unserved_after).await?;
    if unserved > 0 {
        blockers.insert(BlockerCode::ClusterNotServed, unserved);
    }
    Ok(Counts {
        phases: broker::attempts::count_by_phase(connection).await?,
        blockers,
        nodes: nodes::reads::count(connection).await?,
        rows: deletion::purge::rows(connection).await?,
        purge_overdue: deletion::purge::overdue(connection).await?,
    })
}
