//! The history of a subject: its state changes, quiet and announced, as one list.
//!
//! A state change is written once. A quiet one is a row of `state_changes`; one that
//! is announced is part of its audit entry. Both are numbered by the revision that the
//! write gave the subject, which is the order of the list.

use std::time::Duration;

use serde::Serialize;
use slipway_app::broker::port::HistoryLine;
use slipway_app::ports::store::Page;
use slipway_core::broker::history::{HistoryBounds, removable};
use slipway_core::commit::StateChange;
use slipway_core::ids::ProvisionedResourceId;
use slipway_durable::claim::micros;
use slipway_durable::database::End;
use sqlx::Row as _;
use uuid::Uuid;

use super::deletion::leak_rows::open_leak;
use super::json_values::JsonTime;
use super::{Connection, access, writes};
use crate::failure::Failure;
use crate::id_list::IdList;
use crate::micros::Micros;

#[derive(Serialize)]
struct ChangeRow<'a> {
    subject_id: Uuid,
    revision: i64,
    at: JsonTime,
    from_state: Option<&'static str>,
    to_state: &'static str,
    why: &'a str,
}

/// Appends quiet state changes.
pub(crate) async fn append(
    connection: &mut Connection,
    changes: &[&StateChange],
) -> Result<(), Failure> {
    let rows: Vec<_> = changes
        .iter()
        .map(|change| ChangeRow {
            subject_id: change.subject.id,
            revision: change.revision.0,
            at: change.at.into(),
            from_state: change.from,
            to_state: change.to,
            why: &change.why,
        })
        .collect();
    const INSERT: &str = concat!(
        "INSERT INTO state_changes (subject_id, revision, at, from_state, to_state, why) \
         SELECT given.subject_id, given.revision, given.at, given.from_state, given.to_state, \
         given.why FROM ",
        rows_from_json!(
            subject_id: uuid,
            revision: bigint,
            at: time,
            from_state: text,
            to_state: text,
            why: text,
        ),
    );
    Ok(writes::write(connection, INSERT, &rows).await?)
}

/// Each half is limited by itself: the database need not know how to merge them.
pub(crate) const LIST: &str = "SELECT revision, at, from_state, to_state, why FROM \
     (SELECT * FROM (SELECT revision, at, from_state, to_state, why FROM state_changes \
        WHERE subject_id = $1 AND revision < $2 ORDER BY revision DESC LIMIT $3) AS quiet \
     UNION ALL SELECT * FROM (SELECT changed_revision, at, from_state, to_state, why \
        FROM audit_entries WHERE changed_id = $1 AND changed_revision < $2 \
        ORDER BY changed_revision DESC LIMIT $3) AS announced) AS lines \
     ORDER BY revision DESC LIMIT $3";

pub(crate) async fn list(
    connection: &mut Connection,
    (id, page): (ProvisionedResourceId, Page<i64>),
) -> Result<Vec<HistoryLine>, Failure> {
    let found = sqlx::query(LIST)
        .bind(id.as_uuid())
        .bind(page.after.unwrap_or(i64::MAX))
        .bind(i64::from(page.limit))
        .fetch_all(&mut *connection)
        .await?;
    let lines = found.iter().map(|row| {
        Ok(HistoryLine {
            number: row.try_get("revision")?,
            at: row.try_get::<Micros, _>("at")?.into(),
            from: row.try_get("from_state")?,
            to: row.try_get("to_state")?,
            why: row.try_get("why")?,
        })
    });
    Ok(lines.collect::<Result<_, sqlx::Error>>()?)
}

/// The attempts of a page, from this one on, whose history may have more lines than
/// are kept, and the first attempt of the next page. An attempt has no more lines
/// than revisions.
pub(crate) async fn long(
    connection: &mut Connection,
    (kept, from, limit): (HistoryBounds, Option<ProvisionedResourceId>, u32),
) -> Result<(Vec<ProvisionedResourceId>, Option<ProvisionedResourceId>), Failure> {
    let page = sqlx::query(
        "SELECT id, revision > $2 AS long FROM provisioned_resources WHERE id >= $1 \
         ORDER BY id LIMIT $3",
    )
    .bind(from.map_or(Uuid::nil(), |id| id.as_uuid()))
    .bind(i64::from(kept.total()))
    .bind(i64::from(limit) + 1)
    .fetch_all(&mut *connection)
    .await?;
    let (mut long, mut next) = (Vec::new(), None);
    for (index, row) in page.iter().enumerate() {
        let id = ProvisionedResourceId::new(row.try_get("id")?);
        if u32::try_from(index).is_ok_and(|index| index >= limit) {
            next = Some(id);
        } else if row.try_get("long")? {
            long.push(id);
        }
    }
    Ok((long, next))
}

/// The line at this place among the lines of both kinds, counted from one end.
macro_rules! number_at {
    ($order:literal) => {
        concat!(
            "SELECT revision FROM (SELECT * FROM (SELECT revision FROM state_changes \
             WHERE subject_id = $1 ORDER BY revision",
            $order,
            " LIMIT $2) AS quiet UNION ALL SELECT * FROM (SELECT changed_revision \
             FROM audit_entries WHERE changed_id = $1 ORDER BY changed_revision",
            $order,
            " LIMIT $2) AS announced) AS lines ORDER BY revision",
            $order,
            " LIMIT 1 OFFSET $2 - 1"
        )
    };
}

/// Removes lines between the first and the newest ones, `limit` of each kind at most,
/// the oldest first.
pub(crate) async fn trim(
    connection: &mut Connection,
    (kept, id, limit): (HistoryBounds, ProvisionedResourceId, u32),
) -> Result<End<u64>, Failure> {
    let last_of_first = number_at(connection, number_at!(""), id, kept.first).await?;
    let first_of_newest = number_at(connection, number_at!(" DESC"), id, kept.newest).await?;
    let Some((low, high)) = removable(last_of_first, first_of_newest) else {
        return Ok(End::Rollback(0));
    };
    let quiet = sqlx::query(
        "DELETE FROM state_changes WHERE subject_id = $1 AND revision > $2 AND revision < coalesce(\
         (SELECT revision FROM state_changes WHERE subject_id = $1 AND revision > $2 \
            AND revision < $3 ORDER BY revision LIMIT 1 OFFSET $4), $3)",
    )
    .bind(id.as_uuid())
    .bind(low)
    .bind(high)
    .bind(i64::from(limit))
    .execute(&mut *connection)
    .await?
    .rows_affected();
    let announced = access::audit::shorten_history(connection, id, (low, high), limit).await?;
    Ok(End::Commit(quiet + announced))
}

async fn number_at(
    connection: &mut Connection,
    statement: &'static str,
    id: ProvisionedResourceId,
    place: u32,
) -> Result<Option<i64>, sqlx::Error> {
    let found = sqlx::query(statement)
        .bind(id.as_uuid())
        .bind(i64::from(place))
        .fetch_optional(connection)
        .await?;
    found.map(|row| row.try_get("revision")).transpose()
}

/// Removes the quiet lines of subjects that are purged.
pub(crate) async fn forget(connection: &mut Connection, subjects: &IdList) -> Result<u64, Failure> {
    let removed = sqlx::query(sql!("DELETE FROM state_changes WHERE subject_id ", (one_of "$1")))
        .bind(subjects.clone())
        .execute(connection)
        .await?;
    Ok(removed.rows_affected())
}

/// Ends the histories of attempts whose resource has been gone for longer than `keep`,
/// of `limit` attempts at most, and answers how many lines there were. Quiet changes are
/// deleted. Announced ones leave the list and stay in the audit for as long as the audit
/// is kept, which may be longer.
pub(crate) async fn prune(
    connection: &mut Connection,
    (keep, limit): (Duration, u32),
) -> Result<End<u64>, Failure> {
    let ended = sqlx::query(concat!(
        "SELECT a.id FROM resources r JOIN provisioned_resources a ON a.resource_id = r.id \
         WHERE r.deleted_at IS NOT NULL AND r.deleted_at <= ",
        sql!(now, (minus_micros "$1")),
        " AND (EXISTS (SELECT 1 FROM state_changes c WHERE c.subject_id = a.id) \
            OR EXISTS (SELECT 1 FROM audit_entries e WHERE e.changed_id = a.id)) \
         AND NOT ",
        open_leak!("l.subject_id = a.id"),
        " ORDER BY r.deleted_at, a.id LIMIT $2"
    ))
    .bind(micros(keep))
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    if ended.is_empty() {
        return Ok(End::Rollback(0));
    }
    let ended: Result<Vec<Uuid>, _> = ended.iter().map(|row| row.try_get("id")).collect();
    let ended = IdList(ended?);
    let quiet = sqlx::query(sql!("DELETE FROM state_changes WHERE subject_id ", (one_of "$1")))
        .bind(ended.clone())
        .execute(&mut *connection)
        .await?
        .rows_affected();
    let announced = access::audit::end_histories(connection, ended).await?;
    Ok(End::Commit(quiet + announced))
}
