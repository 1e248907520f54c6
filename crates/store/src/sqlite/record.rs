//! Writes the records of ticks, one row after the other in one transaction: there
//! is no round trip to save, and plain parameters cost less than a set in JSON.
//!
//! The statements of a row are one call to the driver: one if its state does not
//! change, two for a quiet change, three for an announced one, see `Recorded`. Each
//! after the first checks by `changes()` whether the one before it wrote its row, so
//! a row whose conditions did not hold gets no state change, audit entry or event.
//!
//! A state change is numbered by the revision that its write gives the row. That
//! leaves gaps but no collisions: every change has a revision of its own, so no
//! number in the history is larger than the revision.

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

/// The update of the row, and the statements that depend on it.
macro_rules! record {
    ($($then:literal)?) => {
        concat!(
            "UPDATE provisioned_resources SET \
                status = coalesce($6, status), phase_since = coalesce($7, phase_since), \
                failure_reason = CASE WHEN $6 IS NULL THEN failure_reason ELSE $8 END, \
                bootstrap_token_id = CASE WHEN $6 IS NULL THEN bootstrap_token_id ELSE $9 END, \
                deletion_requested_at = CASE WHEN $6 IS NULL THEN deletion_requested_at \
                    ELSE $10 END, \
                unsettled_since = CASE WHEN $6 IS NULL THEN unsettled_since ELSE $11 END, \
                absence_proven_at = CASE WHEN $6 IS NULL THEN absence_proven_at ELSE $12 END, \
                observed = coalesce($13, observed), \
                revision = CASE WHEN $6 IS NULL THEN revision ELSE revision + 1 END, \
                updated_at = CASE WHEN $6 IS NULL THEN updated_at ELSE max(",
            sql!(now),
            ", updated_at) END, failures = $5, ",
            release_assignments!("$4"),
            " WHERE id = $1 AND revision = $2 AND wake = claimed_wake AND ",
            slipway_durable::release_condition!("provisioned_resources", "$3"),
            " RETURNING 1",
            $("; ", $then)?
        )
    };
}

const UNCHANGED: &str = record!();

const QUIET: &str = record!(
    "INSERT INTO state_changes (subject_id, revision, at, from_state, to_state, why) \
        SELECT $1, $2 + 1, $14, $15, $16, $17 WHERE changes() = 1"
);

const ANNOUNCED: &str = record!(
    "INSERT INTO audit_entries (id, at, actor, verb, subject_kind, subject_id, project_id, \
        details, changed_id, changed_revision, from_state, to_state, why) \
        SELECT $21, $14, $22, $23, $26, $1, $25, $24, $1, $2 + 1, $15, $16, $17 \
        WHERE changes() = 1; \
     INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
        project_id, payload, occurred_at) \
        SELECT $18, $26, $1, $2 + 1, $19, $25, $20, $14 WHERE changes() = 1"
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
    let (attempt, change) = (parts.attempt, parts.change);
    let (event, audit) = (parts.event, parts.audit);
    let statements = match (change, audit) {
        (None, _) => UNCHANGED,
        (Some(_), None) => QUIET,
        (Some(_), Some(_)) => ANNOUNCED,
    };
    let micros = |time: Timestamp| Micros::from(time);
    let written = sqlx::query(statements)
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
        .bind(attempt.map(|attempt| micros(attempt.unsettled_since())))
        .bind(attempt.and_then(|attempt| attempt.absence_proven_at()).map(micros))
        .bind(parts.observed.map(Json))
        .bind(change.map(|change| micros(change.at)))
        .bind(change.and_then(|change| change.from))
        .bind(change.map(|change| change.to))
        .bind(change.map(|change| change.why.as_str()))
        .bind(event.map(|event| event.id.as_uuid()))
        .bind(event.map(|event| event.event_type.as_str()))
        .bind(event.map(|event| Json(&event.payload)))
        .bind(audit.map(|entry| entry.id.as_uuid()))
        .bind(audit.map(|entry| entry.actor.as_str()))
        .bind(audit.map(|entry| entry.verb))
        .bind(audit.map(|entry| Json(&entry.details)))
        .bind(audit.and_then(|entry| entry.project_id).map(|id| id.as_uuid()))
        .bind(ProvisionedResourceId::KIND)
        .fetch_all(connection)
        .await?;
    Ok(written.len() == 1)
}
