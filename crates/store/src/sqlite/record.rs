//! Writes the records of ticks, one row after the other in one transaction: there
//! is no round trip to save, and plain parameters cost less than a set in JSON.
//!
//! The four statements of a row are one call to the driver. Each after the
//! first checks by `changes()` whether the one before it wrote its row, so a
//! row whose conditions did not hold gets no history, audit entry or event. The
//! event comes last because not every change has one; a change always has a
//! line of history and an audit entry, see `Recorded`.
//!
//! A line of history is numbered by the revision that its write gives the row.
//! That leaves gaps but no collisions: every line has a revision of its own, so
//! no number in the history is larger than the revision.

use std::collections::HashSet;

use slipway_core::Timestamp;
use slipway_core::commit::Recorded;
use slipway_core::ids::ProvisionedResourceId;
use slipway_durable::database::End;
use sqlx::types::Json;

use super::shared::broker::recorded::Parts;
use super::{Backend, Connection};
use crate::failure::Failure;
use crate::micros::Micros;

const RECORD: &str = sql!(
    "UPDATE provisioned_resources SET \
        status = coalesce($6, status), phase_since = coalesce($7, phase_since), \
        failure_reason = CASE WHEN $6 IS NULL THEN failure_reason ELSE $8 END, \
        bootstrap_token_id = CASE WHEN $6 IS NULL THEN bootstrap_token_id ELSE $9 END, \
        deletion_requested_at = CASE WHEN $6 IS NULL THEN deletion_requested_at ELSE $10 END, \
        unsettled_since = CASE WHEN $6 IS NULL THEN unsettled_since ELSE $27 END, \
        absence_proven_at = CASE WHEN $6 IS NULL THEN absence_proven_at ELSE $28 END, \
        observed = coalesce($11, observed), \
        revision = CASE WHEN $6 IS NULL THEN revision ELSE revision + 1 END, \
        updated_at = CASE WHEN $6 IS NULL THEN updated_at ELSE max(",
    now,
    ", updated_at) END, \
        failures = $5, claimed_by = NULL, lease_until = NULL, due_at = ",
    now,
    " + $4 \
        WHERE id = $1 AND revision = $2 AND claim_token = $3 AND wake = claimed_wake \
        RETURNING 1; \
     INSERT INTO phase_history (provisioned_resource_id, seq, at, from_phase, to_phase, why) \
        SELECT $1, $2 + 1, $12, $13, $14, $15 WHERE changes() = 1 AND $12 IS NOT NULL; \
     INSERT INTO audit_entries (id, at, actor, verb, subject_kind, subject_id, project_id, \
        details) \
        SELECT $20, $21, $22, $23, $25, $1, $26, $24 WHERE changes() = 1 AND $20 IS NOT NULL; \
     INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
        project_id, payload, occurred_at) \
        SELECT $16, $25, $1, $2 + 1, $17, $26, $18, $19 \
        WHERE changes() = 1 AND $16 IS NOT NULL"
);

/// Answers the attempts that were written.
pub(super) async fn record(
    backend: &Backend,
    records: &[Recorded],
) -> Result<HashSet<ProvisionedResourceId>, Failure> {
    if records.is_empty() {
        return Ok(HashSet::new());
    }
    backend.database.write(records, write).await
}

async fn write(
    connection: &mut Connection,
    records: &[Recorded],
) -> Result<End<HashSet<ProvisionedResourceId>>, Failure> {
    let mut written = HashSet::with_capacity(records.len());
    for record in records {
        if record_one(connection, record).await? {
            written.insert(record.attempt());
        }
    }
    Ok(End::Commit(written))
}

async fn record_one(connection: &mut Connection, record: &Recorded) -> Result<bool, Failure> {
    let parts = Parts::of(record);
    let (attempt, line) = (parts.attempt, parts.line);
    let (event, audit) = (parts.event, parts.audit);
    let micros = |time: Timestamp| Micros::from(time);
    let written = sqlx::query(RECORD)
        .bind(record.attempt().as_uuid())
        .bind(record.revision().0)
        .bind(parts.claim_token)
        .bind(parts.micros)
        .bind(parts.failures)
        .bind(attempt.map(|attempt| attempt.phase().as_str()))
        .bind(attempt.map(|attempt| micros(attempt.phase_since())))
        .bind(attempt.and_then(|attempt| attempt.failure_reason()))
        .bind(attempt.and_then(|attempt| attempt.bootstrap_token_id()).map(|id| id.as_uuid()))
        .bind(attempt.and_then(|attempt| attempt.deletion_requested_at()).map(micros))
        .bind(parts.observed.map(Json))
        .bind(line.map(|line| micros(line.at)))
        .bind(line.and_then(|line| line.from))
        .bind(line.map(|line| line.to))
        .bind(line.map(|line| line.why.as_str()))
        .bind(event.map(|event| event.id.as_uuid()))
        .bind(event.map(|event| event.event_type.as_str()))
        .bind(event.map(|event| Json(&event.payload)))
        .bind(event.map(|event| micros(event.occurred_at)))
        .bind(audit.map(|entry| entry.id.as_uuid()))
        .bind(audit.map(|entry| micros(entry.at)))
        .bind(audit.map(|entry| entry.actor.as_str()))
        .bind(audit.map(|entry| entry.verb))
        .bind(audit.map(|entry| Json(&entry.details)))
        .bind(ProvisionedResourceId::KIND)
        .bind(audit.and_then(|entry| entry.project_id).map(|id| id.as_uuid()))
        .bind(attempt.map(|attempt| micros(attempt.unsettled_since())))
        .bind(attempt.and_then(|attempt| attempt.absence_proven_at()).map(micros))
        .fetch_all(connection)
        .await?;
    Ok(written.len() == 1)
}
