//! Deletes events that were kept long enough, from the front of the outbox.

use std::time::Duration;

use slipway_core::events::positions::{prune_limit, prune_to};
use slipway_durable::claim::micros;
use slipway_durable::database::End;
use sqlx::Row as _;

use super::{Connection, outbox};
use crate::failure::Failure;

/// Runs under the lock of the outbox head, so that pruning and numbering, and two
/// prunings, are serialised. The subscriptions are read after the lock is granted;
/// one that is opened meanwhile begins at the pruned position that it reads.
pub(crate) async fn prune(
    connection: &mut Connection,
    (keep, limit): (Duration, u32),
) -> Result<End<u64>, Failure> {
    let head =
        sqlx::query(sql!("SELECT pruned_position, last_position FROM outbox_head", for_update))
            .fetch_one(&mut *connection)
            .await?;
    let span = outbox::span(&head)?;
    let slowest: Option<i64> =
        sqlx::query("SELECT min(position) AS slowest FROM event_subscriptions")
            .fetch_one(&mut *connection)
            .await?
            .try_get("slowest")?;
    let reach = prune_limit(span, slowest, limit);
    // One that lies as far in the future is no young event but a wrong time, and would
    // hold up retention until then.
    let first_young: Option<i64> = sqlx::query(sql!(
        "SELECT min(p.position) AS young FROM event_positions p \
         JOIN outbox_events e ON e.seq = p.seq \
         WHERE p.position > $1 AND p.position <= $2 AND e.occurred_at > ",
        now,
        (minus_micros "$3"),
        " AND e.occurred_at <= ",
        now,
        (plus_micros "$3")
    ))
    .bind(span.pruned)
    .bind(reach)
    .bind(micros(keep))
    .fetch_one(&mut *connection)
    .await?
    .try_get("young")?;
    let pruned = prune_to(span, reach, first_young);
    if pruned == span.pruned {
        return Ok(End::Rollback(0));
    }
    sqlx::query(
        "INSERT INTO event_prunes (project_id, position) SELECT project_id, max(position) \
         FROM event_positions WHERE position > $1 AND position <= $2 \
         AND project_id IS NOT NULL GROUP BY project_id \
         ON CONFLICT (project_id) DO UPDATE SET position = excluded.position",
    )
    .bind(span.pruned)
    .bind(pruned)
    .execute(&mut *connection)
    .await?;
    let removed = sqlx::query(concat!(
        "DELETE FROM outbox_events WHERE seq ",
        one_of!("SELECT seq FROM event_positions WHERE position > $1 AND position <= $2")
    ))
    .bind(span.pruned)
    .bind(pruned)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    sqlx::query("DELETE FROM event_positions WHERE position > $1 AND position <= $2")
        .bind(span.pruned)
        .bind(pruned)
        .execute(&mut *connection)
        .await?;
    // A purged project has no reader whose cursor could expire.
    sqlx::query(
        "DELETE FROM event_prunes WHERE NOT EXISTS (SELECT 1 FROM projects p \
         WHERE p.id = event_prunes.project_id) AND NOT EXISTS (SELECT 1 FROM event_positions e \
         WHERE e.project_id = event_prunes.project_id)",
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query("UPDATE outbox_head SET pruned_position = $1")
        .bind(pruned)
        .execute(&mut *connection)
        .await?;
    Ok(End::Commit(removed))
}
