//! Deletes what was kept long enough: events from the front, audit entries of
//! deleted subjects. `history::prune` ends histories.
//!
//! "Deleted" refers to the declared slot: a failed attempt of a resource that
//! still exists keeps its history and its entries.

use std::time::Duration;

use slipway_core::commit::Recheck;
use slipway_core::events::positions::{prune_limit, prune_to};
use slipway_durable::database::End;
use sqlx::Row as _;
use uuid::Uuid;

use super::Connection;
use super::commit::recheck_micros;
use super::events::outbox;
use crate::failure::Failure;

/// The offset from the clock to the moment before which rows are old.
fn backwards(keep: Duration) -> i64 {
    -recheck_micros(Recheck::After(keep)).unwrap_or_default()
}

/// Runs under the lock of the outbox head, so that pruning and numbering, and two
/// prunings, are serialised. The subscriptions are read after the lock is granted;
/// one that is opened meanwhile begins at the pruned position that it reads.
pub(crate) async fn events(
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
    let first_young: Option<i64> = sqlx::query(sql!(
        "SELECT min(p.position) AS young FROM event_positions p \
         JOIN outbox_events e ON e.seq = p.seq \
         WHERE p.position > $1 AND p.position <= $2 AND e.occurred_at > ",
        now,
        (plus_micros "$3")
    ))
    .bind(span.pruned)
    .bind(reach)
    .bind(backwards(keep))
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
    sqlx::query("UPDATE outbox_head SET pruned_position = $1")
        .bind(pruned)
        .execute(&mut *connection)
        .await?;
    Ok(End::Commit(removed))
}

/// Entries of subjects that still exist stay and are skipped, so this walks the
/// table by a cursor and does not always start at its front. Ids of subjects
/// are unique over all kinds, so the kind need not be compared. An entry that is a line
/// of a history stays until that history ends: retention of the audit must not tear
/// gaps into it.
///
/// Answers the last entry of the page, and whether a page follows.
pub(crate) async fn audit_page(
    connection: &mut Connection,
    (keep, after, limit): (Duration, Uuid, u32),
) -> Result<Option<(Uuid, bool)>, Failure> {
    let page = sqlx::query(sql!(
        "SELECT id, at <= ",
        now,
        (plus_micros "$2"),
        " AS old FROM audit_entries WHERE id > $1 ORDER BY id LIMIT $3"
    ))
    .bind(after)
    .bind(backwards(keep))
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    let Some(last) = page.last() else { return Ok(None) };
    let until: Uuid = last.try_get("id")?;
    let full = page.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(Some((until, full && last.try_get::<bool, _>("old")?)))
}

pub(crate) async fn audit(
    connection: &mut Connection,
    (keep, after, until): (Duration, Uuid, Uuid),
) -> Result<u64, Failure> {
    let removed = sqlx::query(sql!(
        "DELETE FROM audit_entries WHERE id > $1 AND id <= $3 AND changed_id IS NULL AND at <= ",
        now,
        (plus_micros "$2"),
        " AND NOT EXISTS (SELECT 1 FROM resources r \
            WHERE r.id = audit_entries.subject_id AND r.deleted_at IS NULL) \
         AND NOT EXISTS (SELECT 1 FROM provisioned_resources a \
            JOIN resources r ON r.id = a.resource_id \
            WHERE a.id = audit_entries.subject_id AND r.deleted_at IS NULL) \
         AND NOT EXISTS (SELECT 1 FROM nodes n JOIN resources r ON r.id = n.resource_id \
            WHERE n.id = audit_entries.subject_id AND r.deleted_at IS NULL) \
         AND NOT EXISTS (SELECT 1 FROM leak_records l \
            WHERE l.id = audit_entries.subject_id AND l.resolved_at IS NULL)"
    ))
    .bind(after)
    .bind(backwards(keep))
    .bind(until)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    Ok(removed)
}
