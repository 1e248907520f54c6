//! Writes the records of many ticks by one statement, which is one round trip
//! and its own transaction. An exception to "no data-modifying CTE", see
//! `docs/adr/0004-records-without-a-lock.md`.
//!
//! The UPDATE writes only rows whose conditions hold, and its RETURNING feeds
//! the inserts of state changes, events and audit: a row that was not written gets
//! none of them. If another transaction has locked a row, the statement waits
//! and checks the conditions again on what was committed.
//!
//! A state change is numbered by the revision that its write gives the row. That
//! leaves gaps but no collisions: every change has a revision of its own, so no
//! number in the history is larger than the revision.

use std::collections::HashSet;

use slipway_core::commit::Recorded;
use slipway_core::ids::ProvisionedResourceId;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::shared::broker::recorded::Parts;
use super::{Backend, Connection};
use crate::failure::Failure;
use crate::micros::Micros;

const RECORD: &str = concat!(
    "WITH moved AS (\
    UPDATE provisioned_resources AS a SET \
        status = coalesce(given.status, a.status), \
        phase_since = coalesce(given.phase_since, a.phase_since), \
        failure_reason = CASE WHEN given.status IS NULL THEN a.failure_reason \
            ELSE given.failure_reason END, \
        bootstrap_token_id = CASE WHEN given.status IS NULL THEN a.bootstrap_token_id \
            ELSE given.bootstrap_token_id END, \
        deletion_requested_at = CASE WHEN given.status IS NULL THEN a.deletion_requested_at \
            ELSE given.deletion_requested_at END, \
        unsettled_since = CASE WHEN given.status IS NULL THEN a.unsettled_since \
            ELSE given.unsettled_since END, \
        absence_proven_at = CASE WHEN given.status IS NULL THEN a.absence_proven_at \
            ELSE given.absence_proven_at END, \
        observed = coalesce(given.observed, a.observed), \
        revision = CASE WHEN given.status IS NULL THEN a.revision ELSE a.revision + 1 END, \
        updated_at = CASE WHEN given.status IS NULL THEN a.updated_at \
            ELSE greatest(clock_timestamp(), a.updated_at) END, \
        failures = given.failures, ",
    release_assignments!(sql!(given_micros)),
    " FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::integer[], \
        $6::text[], $7::timestamptz[], $8::text[], $9::uuid[], $10::timestamptz[], \
        $11::timestamptz[], $12::timestamptz[], $13::jsonb[], $14::timestamptz[], \
        $15::text[], $16::text[], $17::text[], $18::uuid[], $19::text[], $20::jsonb[], \
        $21::uuid[], $22::text[], $23::text[], $24::jsonb[]) \
        AS given (id, revision, claim_token, micros, failures, \
        status, phase_since, failure_reason, bootstrap_token_id, deletion_requested_at, \
        unsettled_since, absence_proven_at, observed, at, \
        from_state, to_state, why, event_id, event_type, payload, \
        audit_id, actor, verb, details) \
    WHERE a.id = given.id AND a.revision = given.revision AND a.wake = a.claimed_wake AND ",
    slipway_durable::release_condition!("a", "given.claim_token"),
    " RETURNING a.id, a.revision, a.project_id, given.at, given.from_state, given.to_state, \
        given.why, given.event_id, given.event_type, given.payload, given.audit_id, \
        given.actor, given.verb, given.details), \
quiet AS (\
    INSERT INTO state_changes (subject_id, revision, at, from_state, to_state, why) \
    SELECT id, revision, at, from_state, to_state, why FROM moved \
    WHERE at IS NOT NULL AND audit_id IS NULL), \
events AS (\
    INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
        project_id, payload, occurred_at) \
    SELECT event_id, $25, id, revision, event_type, project_id, payload, at \
    FROM moved WHERE event_id IS NOT NULL), \
entries AS (\
    INSERT INTO audit_entries (id, at, actor, verb, subject_kind, subject_id, project_id, \
        details, changed_id, changed_revision, from_state, to_state, why) \
    SELECT audit_id, at, actor, verb, $25, id, project_id, details, id, revision, \
        from_state, to_state, why FROM moved WHERE audit_id IS NOT NULL) \
SELECT id FROM moved"
);

/// Answers the attempts that were written.
pub(super) async fn record(
    backend: &Backend,
    records: &[Recorded],
) -> Result<HashSet<ProvisionedResourceId>, Failure> {
    if records.is_empty() {
        return Ok(HashSet::new());
    }
    backend.database.hot_statement(records, write).await
}

async fn write(
    connection: &mut Connection,
    records: &[Recorded],
) -> Result<HashSet<ProvisionedResourceId>, Failure> {
    // In the order of their ids, so that two calls that share rows wait for
    // each other instead of deadlocking.
    let mut records: Vec<&Recorded> = records.iter().collect();
    records.sort_by_key(|record| record.attempt());
    let parts: Vec<Parts<'_>> = records.iter().map(|record| Parts::of(record)).collect();
    macro_rules! column {
        ($kind:ty, |$part:ident| $value:expr) => {
            parts.iter().map(|$part| $value).collect::<Vec<$kind>>()
        };
    }
    let micros = |time: slipway_core::Timestamp| Micros::from(time);
    let ids: Vec<Uuid> = records.iter().map(|record| record.attempt().as_uuid()).collect();
    let revisions: Vec<i64> = records.iter().map(|record| record.revision().0).collect();
    let query = sqlx::query(RECORD)
        .bind(ids)
        .bind(revisions)
        .bind(column!(i64, |p| p.claim_token))
        .bind(column!(Option<i64>, |p| p.micros))
        .bind(column!(i32, |p| p.failures))
        .bind(column!(Option<&str>, |p| p.attempt.map(|a| a.phase().as_str())))
        .bind(column!(Option<Micros>, |p| p.attempt.map(|a| micros(a.phase_since()))))
        .bind(column!(Option<&str>, |p| p.attempt.and_then(|a| a.failure_reason())))
        .bind(column!(Option<Uuid>, |p| {
            p.attempt.and_then(|a| a.bootstrap_token_id()).map(|id| id.as_uuid())
        }))
        .bind(column!(Option<Micros>, |p| {
            p.attempt.and_then(|a| a.deletion_requested_at()).map(micros)
        }))
        .bind(column!(Option<Micros>, |p| p.attempt.map(|a| micros(a.unsettled_since()))))
        .bind(column!(Option<Micros>, |p| {
            p.attempt.and_then(|a| a.absence_proven_at()).map(micros)
        }))
        .bind(column!(Option<Json<&serde_json::Value>>, |p| p.observed.map(Json)))
        .bind(column!(Option<Micros>, |p| p.change.map(|change| micros(change.at))))
        .bind(column!(Option<&str>, |p| p.change.and_then(|change| change.from)))
        .bind(column!(Option<&str>, |p| p.change.map(|change| change.to)))
        .bind(column!(Option<&str>, |p| p.change.map(|change| change.why.as_str())))
        .bind(column!(Option<Uuid>, |p| p.event.map(|event| event.id.as_uuid())))
        .bind(column!(Option<&str>, |p| p.event.map(|event| event.event_type.as_str())))
        .bind(column!(Option<Json<&serde_json::Value>>, |p| p.event.map(|e| Json(&e.payload))))
        .bind(column!(Option<Uuid>, |p| p.audit.map(|entry| entry.id.as_uuid())))
        .bind(column!(Option<&str>, |p| p.audit.map(|entry| entry.actor.as_str())))
        .bind(column!(Option<&str>, |p| p.audit.map(|entry| entry.verb)))
        .bind(column!(Option<Json<&serde_json::Value>>, |p| p.audit.map(|e| Json(&e.details))))
        .bind(ProvisionedResourceId::KIND);
    let written = query.fetch_all(connection).await?;
    let ids = written.iter().map(|row| row.try_get("id").map(ProvisionedResourceId::new));
    Ok(ids.collect::<Result<_, sqlx::Error>>()?)
}
