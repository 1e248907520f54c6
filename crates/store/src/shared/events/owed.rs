//! Deliveries that are owed: events behind the cursor of a subscription.

use slipway_core::ids::DeletionId;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;

/// The event `e` is about a deletion, its target or a member.
macro_rules! about_members {
    () => {
        "(e.aggregate_id = $1 OR e.aggregate_id = $2 OR EXISTS (SELECT 1 FROM resources r \
         WHERE r.id = e.aggregate_id AND r.deletion_id = $1) OR EXISTS (\
            SELECT 1 FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id \
            WHERE a.id = e.aggregate_id AND r.deletion_id = $1) OR EXISTS (\
            SELECT 1 FROM nodes n JOIN resources r ON r.id = n.resource_id \
            WHERE n.id = e.aggregate_id AND r.deletion_id = $1) OR EXISTS (\
            SELECT 1 FROM stacks s WHERE s.id = e.aggregate_id AND s.deletion_id = $1) OR EXISTS (\
            SELECT 1 FROM fleet_templates t \
            WHERE t.id = e.aggregate_id AND t.deletion_id = $1))"
    };
}

/// Whether a subscription has not delivered every event about a deletion, its target and
/// its members. It reads what lies behind the slowest cursor, which is little unless a
/// subscription fails.
pub(crate) async fn to_deletion(
    connection: &mut Connection,
    deletion: DeletionId,
    target: Uuid,
) -> Result<bool, Failure> {
    let owed: i32 = sqlx::query_scalar(concat!(
        "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM event_subscriptions) THEN 0 \
         WHEN EXISTS (SELECT 1 FROM outbox_pending p JOIN outbox_events e ON e.seq = p.seq \
            WHERE ",
        about_members!(),
        ") THEN 1 WHEN EXISTS (SELECT 1 FROM event_positions p \
            JOIN outbox_events e ON e.seq = p.seq \
            WHERE p.position > (SELECT min(position) FROM event_subscriptions) AND ",
        about_members!(),
        ") THEN 1 ELSE 0 END"
    ))
    .bind(deletion.as_uuid())
    .bind(target)
    .fetch_one(connection)
    .await?;
    Ok(owed != 0)
}
