//! What waits in every lane. One look into the due index for each cluster, so
//! that it costs the same whatever is due.

use slipway_app::ports::broker::OverdueLane;
use slipway_core::Timestamp;
use slipway_core::ids::Lane;
use sqlx::Row as _;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;
use crate::micros::Micros;

/// A lane that is no cluster's can only be one whose cluster was removed by
/// hand; it is not looked for.
pub(super) async fn list_overdue(
    connection: &mut Connection,
    (): (),
) -> Result<Vec<OverdueLane>, Failure> {
    let found = sqlx::query(sql!(
        "SELECT ",
        now,
        " AS now, id, name, (SELECT min(due_at) FROM provisioned_resources \
         WHERE lane = clusters.id AND due_at IS NOT NULL) AS oldest FROM clusters \
         UNION ALL SELECT ",
        now,
        ", NULL, NULL, (SELECT min(due_at) FROM provisioned_resources \
         WHERE lane IS NULL AND due_at IS NOT NULL)"
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
        overdue.push(OverdueLane {
            lane: row.try_get::<Option<Uuid>, _>("id")?.map(Lane::new),
            cluster: row.try_get("name")?,
            overdue: now.since(oldest),
        });
    }
    overdue.sort_by(|left, right| left.cluster.cmp(&right.cluster));
    Ok(overdue)
}
