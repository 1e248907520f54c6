//! The most overdue row of every partition. One lookup in the due index for
//! each cluster, so that the cost does not depend on how many rows are due.

use slipway_app::broker::port::OverduePartition;
use slipway_core::Timestamp;
use slipway_core::ids::Partition;
use sqlx::Row as _;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;
use crate::micros::Micros;

/// A partition without a cluster exists only if somebody removed the cluster by
/// hand; it is not listed.
pub(crate) async fn list_overdue(
    connection: &mut Connection,
    (): (),
) -> Result<Vec<OverduePartition>, Failure> {
    let found = sqlx::query(sql!(
        "SELECT ",
        now,
        " AS now, id, name, (SELECT min(due_at) FROM provisioned_resources \
         WHERE partition = clusters.id AND due_at IS NOT NULL) AS oldest FROM clusters \
         UNION ALL SELECT ",
        now,
        ", NULL, NULL, (SELECT min(due_at) FROM provisioned_resources \
         WHERE partition IS NULL AND due_at IS NOT NULL)"
    ))
    .fetch_all(&mut *connection)
    .await?;
    let mut overdue = Vec::new();
    for row in found {
        let now: Timestamp = row.try_get::<Micros, _>("now")?.into();
        let oldest: Option<Micros> = row.try_get("oldest")?;
        let Some(oldest) = oldest.map(Timestamp::from).filter(|oldest| *oldest <= now) else {
            continue;
        };
        overdue.push(OverduePartition {
            partition: row.try_get::<Option<Uuid>, _>("id")?.map(Partition::new),
            cluster: row.try_get("name")?,
            overdue: now.since(oldest),
        });
    }
    overdue.sort_by(|left, right| left.cluster.cmp(&right.cluster));
    Ok(overdue)
}
