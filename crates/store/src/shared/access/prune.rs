//! Deletes audit entries that were kept long enough and whose subject is deleted.

use std::time::Duration;

use slipway_durable::claim::micros;
use sqlx::Row as _;
use uuid::Uuid;

use super::Connection;
use super::broker::retention::live_resource_or_attempt;
use super::deletion::leak_rows::open_leak;
use super::nodes::reads::node_of_live_resource;
use crate::failure::Failure;

/// Entries of subjects that still exist stay and are skipped, so this walks the
/// table by a cursor and does not always start at its front. Ids of subjects
/// are unique over all kinds, so the kind need not be compared. An entry that is a line
/// of a history stays until that history ends: retention of the audit must not tear
/// gaps into it. One that a loop wrote and that was taken out of the history of something
/// that still exists goes: flapping writes such entries for as long as it lasts.
///
/// Answers the last entry of the page, and whether a page follows.
pub(crate) async fn page(
    connection: &mut Connection,
    (keep, after, limit): (Duration, Uuid, u32),
) -> Result<Option<(Uuid, bool)>, Failure> {
    let page = sqlx::query(sql!(
        "SELECT id, at <= ",
        now,
        (minus_micros "$2"),
        " AS old FROM audit_entries WHERE id > $1 ORDER BY id LIMIT $3"
    ))
    .bind(after)
    .bind(micros(keep))
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    let Some(last) = page.last() else { return Ok(None) };
    let until: Uuid = last.try_get("id")?;
    let full = page.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(Some((until, full && last.try_get::<bool, _>("old")?)))
}

pub(crate) async fn prune(
    connection: &mut Connection,
    (keep, after, until): (Duration, Uuid, Uuid),
) -> Result<u64, Failure> {
    let removed = sqlx::query(concat!(
        "DELETE FROM audit_entries WHERE id > $1 AND id <= $3 AND changed_id IS NULL AND at <= ",
        sql!(now, (minus_micros "$2")),
        " AND ((changed_revision IS NOT NULL AND substr(actor, 1, 5) = 'loop:') OR NOT (",
        live_resource_or_attempt!("audit_entries.subject_id"),
        ")) AND NOT ",
        node_of_live_resource!("audit_entries.subject_id"),
        " AND NOT ",
        open_leak!("l.id = audit_entries.subject_id")
    ))
    .bind(after)
    .bind(micros(keep))
    .bind(until)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    Ok(removed)
}
