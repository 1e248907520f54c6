//! Writes the commit that a decision answered, in the transaction that loaded
//! its snapshot.
//!
//! Every update names the revision (or the claim token) that was read. Under
//! the lock of the resource row it cannot have moved; if it did all the same,
//! the whole commit is refused and rolled back.

use std::time::Duration;

use slipway_core::access::audit::AuditEntry;
use slipway_core::commit::{Commit, Recheck, Release, Write};
use slipway_core::event::Event;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::{ErrorKind, Refusal};
use slipway_durable::claim::micros;
use sqlx::types::Json;

use super::broker::claims::{self, ATTEMPTS};
use super::catalog::write;
use super::deletion::leak_writes;
use super::{Connection, writes};
use crate::failure::Failure;

/// Writes the whole commit. The caller commits the transaction.
pub(crate) async fn apply(connection: &mut Connection, commit: &Commit) -> Result<(), Failure> {
    for write in &commit.writes {
        apply_write(connection, write).await?;
    }
    for event in &commit.events {
        event_insert(connection, event).await?;
    }
    for entry in &commit.audit {
        audit_insert(connection, entry).await?;
    }
    wake(connection, &commit.wakes).await?;
    Ok(())
}

pub(crate) async fn apply_write(connection: &mut Connection, write: &Write) -> Result<(), Failure> {
    match write {
        Write::ResourceInsert(resource) => writes::resource_insert(connection, resource).await,
        Write::ResourceUpdate(resource) => writes::resource_update(connection, resource).await,
        Write::AttemptInsert(attempt) => writes::attempt_insert(connection, attempt).await,
        Write::AttemptUpdate(attempt) => writes::attempt_update(connection, attempt).await,
        Write::TokenInsert(token) => writes::token_insert(connection, token).await,
        Write::TokenUpdate(token) => writes::token_update(connection, token).await,
        Write::NodeInsert(node) => writes::node_insert(connection, node).await,
        Write::NodeUpdate(node) => writes::node_update(connection, node).await,
        Write::DeletionInsert(deletion) => writes::deletion_insert(connection, deletion).await,
        Write::DeletionUpdate(deletion) => writes::deletion_update(connection, deletion).await,
        Write::BlockersReplace(attempt, blockers) => {
            writes::blockers_replace(connection, *attempt, blockers).await
        }
        Write::HistoryAppend { attempt, at, from, to, why } => {
            writes::history_append(connection, *attempt, *at, *from, *to, why).await
        }
        Write::ObservedReplace(attempt, observed) => {
            sqlx::query("UPDATE provisioned_resources SET observed = $2 WHERE id = $1")
                .bind(attempt.as_uuid())
                .bind(Json(observed))
                .execute(connection)
                .await?;
            Ok(())
        }
        Write::LeakInsert(leak) => leak_writes::insert(connection, leak).await,
        Write::LeaksResolve(attempt) => leak_writes::resolve(connection, &[*attempt]).await,
        Write::Catalog(write) => write::apply(connection, write).await,
        Write::Release(release) => release_one(connection, *release).await,
    }
}

/// The event is unique on (aggregate, revision, type). The insert checks this by ON
/// CONFLICT and the count of rows, since continuing after a violation differs between
/// the databases. A duplicate means that a decision announced the event twice.
async fn event_insert(connection: &mut Connection, event: &Event) -> Result<(), Failure> {
    let inserted = sqlx::query(
        "INSERT INTO outbox_events (id, aggregate_kind, aggregate_id, revision, event_type, \
         project_id, payload, occurred_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT DO NOTHING",
    )
    .bind(event.id.as_uuid())
    .bind(ProvisionedResourceId::KIND)
    .bind(event.aggregate_id.as_uuid())
    .bind(event.revision.0)
    .bind(event.event_type.as_str())
    .bind(event.project_id.as_uuid())
    .bind(Json(&event.payload))
    .bind(crate::micros::Micros::from(event.occurred_at))
    .execute(connection)
    .await?
    .rows_affected();
    writes::one_row(inserted, || {
        Refusal::new(
            ErrorKind::RevisionStale,
            format!(
                "{} of {} was announced already at revision {}; read it again",
                event.event_type.as_str(),
                event.aggregate_id,
                event.revision.0
            ),
        )
    })
}

pub(crate) async fn audit_insert(
    connection: &mut Connection,
    entry: &AuditEntry,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO audit_entries (id, at, actor, verb, subject_kind, subject_id, project_id, \
         reason, details, correlation_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(entry.id.as_uuid())
    .bind(crate::micros::Micros::from(entry.at))
    .bind(&entry.actor)
    .bind(entry.verb)
    .bind(entry.subject_kind)
    .bind(entry.subject_id)
    .bind(entry.project_id.map(|id| id.as_uuid()))
    .bind(entry.reason.as_deref())
    .bind(Json(&entry.details))
    .bind(entry.correlation_id.as_deref())
    .execute(connection)
    .await?;
    Ok(())
}

/// Wakes attempts.
pub(crate) async fn wake(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<(), sqlx::Error> {
    let keys: Vec<_> = attempts.iter().map(|id| id.as_uuid()).collect();
    ATTEMPTS.wake(connection, &keys).await
}

pub(crate) async fn release_one(
    connection: &mut Connection,
    release: Release,
) -> Result<(), Failure> {
    let released = claims::release(connection, &[release]).await?;
    writes::one_row(released, || {
        Refusal::new(
            ErrorKind::ClaimLost,
            format!(
                "claim {} of {} is no longer held; another worker has it",
                release.claim_token.0, release.attempt
            ),
        )
    })
}

/// After how long the row is due again; none means "when woken".
pub(crate) fn due_in(recheck: Recheck) -> Option<Duration> {
    match recheck {
        Recheck::Now => Some(Duration::ZERO),
        Recheck::After(delay) => Some(delay),
        Recheck::Never => None,
    }
}

/// The same in microseconds.
pub(crate) fn recheck_micros(recheck: Recheck) -> Option<i64> {
    due_in(recheck).map(micros)
}
