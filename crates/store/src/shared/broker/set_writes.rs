//! One statement per kind of write for a whole set of rows, as `writes.rs` has
//! them for one row. These are the hot writes of the loop; `batch.rs` uses them.
//!
//! Each statement takes its rows as one JSON parameter and tells by the number
//! of touched rows whether every condition was met. It does not tell which row
//! failed: the caller rolls back and decides row by row.

use serde::Serialize;
use serde_json::Value;
use slipway_core::access::audit::AuditEntry;
use slipway_core::blocker::Blocker;
use slipway_core::event::Event;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::nodes::token::BootstrapToken;
use slipway_core::{Phase, Timestamp};
use sqlx::types::Json;
use uuid::Uuid;

use super::Connection;
use super::json_values::{JsonBytes, JsonTime};

/// Everything that one decision writes to the row of its attempt. A decision
/// changes the phase, records the observation and releases the claim: one write
/// of the row instead of three.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AttemptPatch<'a> {
    pub(crate) id: Uuid,
    /// The revision that was read; required for the seven columns below.
    pub(crate) revision: Option<i64>,
    pub(crate) status: Option<&'static str>,
    pub(crate) phase_since: Option<JsonTime>,
    pub(crate) failure_reason: Option<&'a str>,
    pub(crate) bootstrap_token_id: Option<Uuid>,
    pub(crate) deletion_requested_at: Option<JsonTime>,
    pub(crate) unsettled_since: Option<JsonTime>,
    pub(crate) absence_proven_at: Option<JsonTime>,
    // Omitted rather than null: a null would be read as JSON's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed: Option<&'a Value>,
    /// The claim to release; required for the two columns below.
    pub(crate) claim_token: Option<i64>,
    pub(crate) micros: Option<i64>,
    pub(crate) failures: Option<i32>,
}

/// One line of a history.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryRow<'a> {
    pub(crate) id: Uuid,
    pub(crate) at: JsonTime,
    pub(crate) from_phase: Option<&'static str>,
    pub(crate) to_phase: &'static str,
    pub(crate) why: &'a str,
}

impl<'a> HistoryRow<'a> {
    pub(crate) fn new(
        attempt: ProvisionedResourceId,
        at: Timestamp,
        from: Option<Phase>,
        to: Phase,
        why: &'a str,
    ) -> Self {
        Self {
            id: attempt.as_uuid(),
            at: at.into(),
            from_phase: from.map(Phase::as_str),
            to_phase: to.as_str(),
            why,
        }
    }
}

/// Runs a statement over rows and answers whether it touched exactly as many.
/// Without rows it sends nothing.
macro_rules! touched_all {
    ($connection:expr, $rows:expr, $sql:expr) => {{
        let rows = $rows;
        if rows.is_empty() {
            return Ok(true);
        }
        let touched =
            sqlx::query($sql).bind(Json(rows)).execute($connection).await?.rows_affected();
        Ok(u64::try_from(rows.len()).is_ok_and(|count| count == touched))
    }};
}

/// Names the revision if the aggregate is written, and the claim if it is
/// released. The release compares `wake` as every release does.
pub(crate) async fn attempts_patch(
    connection: &mut Connection,
    patches: &[AttemptPatch<'_>],
) -> Result<bool, sqlx::Error> {
    touched_all!(
        connection,
        patches,
        concat!(
            "UPDATE provisioned_resources AS a SET \
             status = coalesce(given.status, a.status), \
             phase_since = coalesce(given.phase_since, a.phase_since), \
             failure_reason = CASE WHEN given.revision IS NULL THEN a.failure_reason \
                ELSE given.failure_reason END, \
             bootstrap_token_id = CASE WHEN given.revision IS NULL THEN a.bootstrap_token_id \
                ELSE given.bootstrap_token_id END, \
             deletion_requested_at = CASE WHEN given.revision IS NULL \
                THEN a.deletion_requested_at ELSE given.deletion_requested_at END, \
             unsettled_since = CASE WHEN given.revision IS NULL THEN a.unsettled_since \
                ELSE given.unsettled_since END, \
             absence_proven_at = CASE WHEN given.revision IS NULL THEN a.absence_proven_at \
                ELSE given.absence_proven_at END, \
             observed = coalesce(given.observed, a.observed), \
             revision = CASE WHEN given.revision IS NULL THEN a.revision \
                ELSE a.revision + 1 END, \
             updated_at = CASE WHEN given.revision IS NULL THEN a.updated_at ELSE ",
            sql!(greatest, "(", now),
            ", a.updated_at) END, \
             failures = coalesce(given.failures, a.failures), \
             claimed_by = CASE WHEN given.claim_token IS NULL THEN a.claimed_by END, \
             lease_until = CASE WHEN given.claim_token IS NULL THEN a.lease_until END, \
             due_at = CASE WHEN given.claim_token IS NULL THEN a.due_at \
                WHEN a.wake <> a.claimed_wake THEN ",
            sql!(now, " ELSE ", now, " + ", given_micros),
            " END FROM ",
            rows_from_json!(
                id: uuid,
                revision: bigint,
                status: text,
                phase_since: time,
                failure_reason: text,
                bootstrap_token_id: uuid,
                deletion_requested_at: time,
                unsettled_since: time,
                absence_proven_at: time,
                observed: json,
                claim_token: bigint,
                micros: bigint,
                failures: integer,
            ),
            " WHERE a.id = given.id AND (given.revision IS NULL OR a.revision = given.revision) \
             AND (given.claim_token IS NULL OR a.claim_token = given.claim_token)",
        )
    )
}

/// Numbers each line itself; the resource rows are locked, so nobody else does.
/// Two lines of one history would get the same number: the key refuses that,
/// and the rows are decided one by one.
pub(crate) async fn history_append(
    connection: &mut Connection,
    lines: &[HistoryRow<'_>],
) -> Result<bool, sqlx::Error> {
    touched_all!(
        connection,
        lines,
        concat!(
            "INSERT INTO phase_history \
             (provisioned_resource_id, seq, at, from_phase, to_phase, why) \
             SELECT given.id, (SELECT coalesce(max(h.seq), 0) + 1 FROM phase_history AS h \
                WHERE h.provisioned_resource_id = given.id), \
             given.at, given.from_phase, given.to_phase, given.why FROM ",
            rows_from_json!(id: uuid, at: time, from_phase: text, to_phase: text, why: text),
        )
    )
}

#[derive(Serialize)]
struct EventRow<'a> {
    id: Uuid,
    aggregate_kind: &'static str,
    aggregate_id: Uuid,
    revision: i64,
    event_type: &'static str,
    project_id: Uuid,
    payload: &'a Value,
    occurred_at: JsonTime,
}

/// An event that was announced already is not inserted again, and is missing
/// from the count.
pub(crate) async fn events_insert(
    connection: &mut Connection,
    events: &[&Event],
) -> Result<bool, sqlx::Error> {
    let rows: Vec<_> = events
        .iter()
        .map(|event| EventRow {
            id: event.id.as_uuid(),
            aggregate_kind: ProvisionedResourceId::KIND,
            aggregate_id: event.aggregate_id.as_uuid(),
            revision: event.revision.0,
            event_type: event.event_type.as_str(),
            project_id: event.project_id.as_uuid(),
            payload: &event.payload,
            occurred_at: event.occurred_at.into(),
        })
        .collect();
    touched_all!(
        connection,
        &rows,
        concat!(
            "INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
             project_id, payload, occurred_at) SELECT given.id, given.aggregate_kind, \
             given.aggregate_id, given.revision, given.event_type, given.project_id, \
             coalesce(given.payload, 'null'), given.occurred_at FROM ",
            rows_from_json!(
                id: uuid,
                aggregate_kind: text,
                aggregate_id: uuid,
                revision: bigint,
                event_type: text,
                project_id: uuid,
                payload: json,
                occurred_at: time,
            ),
            " WHERE true ON CONFLICT DO NOTHING",
        )
    )
}

#[derive(Serialize)]
struct AuditRow<'a> {
    id: Uuid,
    at: JsonTime,
    actor: &'a str,
    verb: &'static str,
    subject_kind: &'static str,
    subject_id: Uuid,
    project_id: Option<Uuid>,
    reason: Option<&'a str>,
    details: &'a Value,
    correlation_id: Option<&'a str>,
}

pub(crate) async fn audit_insert(
    connection: &mut Connection,
    entries: &[&AuditEntry],
) -> Result<bool, sqlx::Error> {
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| AuditRow {
            id: entry.id.as_uuid(),
            at: entry.at.into(),
            actor: &entry.actor,
            verb: entry.verb,
            subject_kind: entry.subject_kind,
            subject_id: entry.subject_id,
            project_id: entry.project_id.map(|id| id.as_uuid()),
            reason: entry.reason.as_deref(),
            details: &entry.details,
            correlation_id: entry.correlation_id.as_deref(),
        })
        .collect();
    touched_all!(
        connection,
        &rows,
        concat!(
            "INSERT INTO audit_entries (id, at, actor, verb, subject_kind, subject_id, \
             project_id, reason, details, correlation_id) SELECT given.id, given.at, \
             given.actor, given.verb, given.subject_kind, given.subject_id, given.project_id, \
             given.reason, coalesce(given.details, 'null'), given.correlation_id FROM ",
            rows_from_json!(
                id: uuid,
                at: time,
                actor: text,
                verb: text,
                subject_kind: text,
                subject_id: uuid,
                project_id: uuid,
                reason: text,
                details: json,
                correlation_id: text,
            ),
        )
    )
}

#[derive(Serialize)]
struct TokenRow<'a> {
    id: Uuid,
    project_id: Uuid,
    provisioned_resource_id: Uuid,
    kind: &'static str,
    hash: JsonBytes,
    issued_at: JsonTime,
    expires_at: JsonTime,
    hard_expires_at: JsonTime,
    issued_by: Option<&'a str>,
}

pub(crate) async fn tokens_insert(
    connection: &mut Connection,
    tokens: &[&BootstrapToken],
) -> Result<bool, sqlx::Error> {
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| TokenRow {
            id: token.id.as_uuid(),
            project_id: token.project_id.as_uuid(),
            provisioned_resource_id: token.provisioned_resource_id.as_uuid(),
            kind: token.kind.as_str(),
            hash: token.hash.as_bytes()[..].into(),
            issued_at: token.issued_at.into(),
            expires_at: token.expires_at.into(),
            hard_expires_at: token.hard_expires_at.into(),
            issued_by: token.issued_by.as_deref(),
        })
        .collect();
    touched_all!(
        connection,
        &rows,
        concat!(
            "INSERT INTO bootstrap_tokens (id, project_id, provisioned_resource_id, kind, hash, \
             issued_at, expires_at, hard_expires_at, issued_by) SELECT given.id, \
             given.project_id, given.provisioned_resource_id, given.kind, given.hash, \
             given.issued_at, given.expires_at, given.hard_expires_at, given.issued_by FROM ",
            rows_from_json!(
                id: uuid,
                project_id: uuid,
                provisioned_resource_id: uuid,
                kind: text,
                hash: bytes,
                issued_at: time,
                expires_at: time,
                hard_expires_at: time,
                issued_by: text,
            ),
        )
    )
}

#[derive(Serialize)]
struct BlockerRow<'a> {
    subject_kind: &'static str,
    subject_id: Uuid,
    code: &'static str,
    since: JsonTime,
    owner: &'static str,
    message: &'a str,
    evidence: &'a Value,
    next_retry_at: Option<JsonTime>,
}

/// Replaces the whole sets of blockers of these attempts.
pub(crate) async fn blockers_replace(
    connection: &mut Connection,
    sets: &[(ProvisionedResourceId, &[Blocker])],
) -> Result<bool, sqlx::Error> {
    if sets.is_empty() {
        return Ok(true);
    }
    let subjects: crate::id_list::IdList = sets.iter().map(|(id, _)| id.as_uuid()).collect();
    sqlx::query(sql!(
        "DELETE FROM blockers WHERE subject_kind = $1 AND subject_id ",
        (one_of "$2")
    ))
    .bind(ProvisionedResourceId::KIND)
    .bind(subjects)
    .execute(&mut *connection)
    .await?;
    let rows: Vec<_> = sets
        .iter()
        .flat_map(|(subject, blockers)| blockers.iter().map(|blocker| (*subject, blocker)))
        .map(|(subject, blocker)| BlockerRow {
            subject_kind: ProvisionedResourceId::KIND,
            subject_id: subject.as_uuid(),
            code: blocker.code.as_str(),
            since: blocker.since.into(),
            owner: blocker.code.owner(),
            message: &blocker.message,
            evidence: &blocker.evidence,
            next_retry_at: blocker.next_retry_at.map(JsonTime::from),
        })
        .collect();
    touched_all!(
        connection,
        &rows,
        concat!(
            "INSERT INTO blockers (subject_kind, subject_id, code, since, owner, message, \
             evidence, next_retry_at) SELECT given.subject_kind, given.subject_id, given.code, \
             given.since, given.owner, given.message, coalesce(given.evidence, 'null'), \
             given.next_retry_at FROM ",
            rows_from_json!(
                subject_kind: text,
                subject_id: uuid,
                code: text,
                since: time,
                owner: text,
                message: text,
                evidence: json,
                next_retry_at: time,
            ),
            " WHERE true ON CONFLICT DO NOTHING",
        )
    )
}
