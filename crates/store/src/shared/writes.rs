//! One statement per kind of write. Nothing here decides or orders; `commit.rs` does.

use slipway_core::blocker::Blocker;
use slipway_core::broker::attempt::ProvisionedResource;
use slipway_core::broker::resource::Resource;
use slipway_core::deletion::record::Deletion;
use slipway_core::ids::{ProvisionedResourceId, Revision};
use slipway_core::nodes::node::Node;
use slipway_core::nodes::token::BootstrapToken;
use slipway_core::{ErrorKind, Phase, Refusal, Timestamp};
use sqlx::types::Json;

use super::Connection;
use super::nodes::mesh;
use crate::failure::Failure;
use crate::micros::Micros;

/// Refuses unless a conditional write changed its row.
pub(crate) fn one_row(affected: u64, refusal: impl FnOnce() -> Refusal) -> Result<(), Failure> {
    if affected == 1 { Ok(()) } else { Err(Failure::Refused(refusal())) }
}

pub(crate) fn stale(kind: &str, id: impl std::fmt::Display, revision: Revision) -> Refusal {
    Refusal::new(
        ErrorKind::RevisionStale,
        format!("{kind} {id} is no longer at revision {}; read it again", revision.0),
    )
}

pub(crate) fn optional(time: Option<Timestamp>) -> Option<Micros> {
    time.map(Micros::from)
}

/// The handle was checked under the lock of its project; the index is the
/// backstop, and ON CONFLICT keeps the transaction usable on both databases.
pub(crate) async fn resource_insert(
    connection: &mut Connection,
    resource: &Resource,
) -> Result<(), Failure> {
    let inserted = sqlx::query(
        "INSERT INTO resources (id, revision, project_id, handle, labels, deletion_id, \
         deleted_at, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT DO NOTHING",
    )
    .bind(resource.id.as_uuid())
    .bind(resource.revision.0)
    .bind(resource.project_id.as_uuid())
    .bind(resource.handle.as_str())
    .bind(Json(&resource.labels))
    .bind(resource.deletion_id.map(|id| id.as_uuid()))
    .bind(optional(resource.deleted_at))
    .bind(Micros::from(resource.created_at))
    .bind(Micros::from(resource.updated_at))
    .execute(connection)
    .await?
    .rows_affected();
    one_row(inserted, || {
        Refusal::new(
            ErrorKind::HandleTaken,
            format!("handle `{}` is taken in this project; choose another", resource.handle),
        )
        .at("handle")
    })
}

pub(crate) async fn resource_update(
    connection: &mut Connection,
    resource: &Resource,
) -> Result<(), Failure> {
    let updated = sqlx::query(sql!(
        "UPDATE resources SET labels = $3, deletion_id = $4, deleted_at = $5, \
         revision = revision + 1, updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE id = $1 AND revision = $2"
    ))
    .bind(resource.id.as_uuid())
    .bind(resource.revision.0)
    .bind(Json(&resource.labels))
    .bind(resource.deletion_id.map(|id| id.as_uuid()))
    .bind(optional(resource.deleted_at))
    .execute(connection)
    .await?
    .rows_affected();
    one_row(updated, || stale("resource", resource.id, resource.revision))
}

pub(crate) async fn attempt_insert(
    connection: &mut Connection,
    attempt: &ProvisionedResource,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO provisioned_resources (id, revision, resource_id, project_id, \
         blueprint_version_id, cloud_credential_id, attempt, status, phase_since, \
         failure_reason, xr_name, bootstrap_token_id, parameter_values, \
         deletion_requested_at, unsettled_since, created_at, updated_at, partition) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
    )
    .bind(attempt.id().as_uuid())
    .bind(attempt.revision().0)
    .bind(attempt.resource_id().as_uuid())
    .bind(attempt.project_id().as_uuid())
    .bind(attempt.blueprint_version_id().as_uuid())
    .bind(attempt.cloud_credential_id().as_uuid())
    .bind(attempt.attempt())
    .bind(attempt.phase().as_str())
    .bind(Micros::from(attempt.phase_since()))
    .bind(attempt.failure_reason())
    .bind(attempt.xr_name())
    .bind(attempt.bootstrap_token_id().map(|id| id.as_uuid()))
    .bind(Json(attempt.parameter_values()))
    .bind(optional(attempt.deletion_requested_at()))
    .bind(optional(attempt.unsettled_since()))
    .bind(Micros::from(attempt.created_at()))
    .bind(Micros::from(attempt.updated_at()))
    .bind(attempt.partition().map(|partition| partition.as_uuid()))
    .execute(connection)
    .await?;
    Ok(())
}

/// Does not touch the loop's columns: claims, wakes and releases own them.
pub(crate) async fn attempt_update(
    connection: &mut Connection,
    attempt: &ProvisionedResource,
) -> Result<(), Failure> {
    let updated = sqlx::query(sql!(
        "UPDATE provisioned_resources SET status = $3, phase_since = $4, failure_reason = $5, \
         bootstrap_token_id = $6, deletion_requested_at = $7, unsettled_since = $8, \
         absence_proven_at = $9, revision = revision + 1, updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE id = $1 AND revision = $2"
    ))
    .bind(attempt.id().as_uuid())
    .bind(attempt.revision().0)
    .bind(attempt.phase().as_str())
    .bind(Micros::from(attempt.phase_since()))
    .bind(attempt.failure_reason())
    .bind(attempt.bootstrap_token_id().map(|id| id.as_uuid()))
    .bind(optional(attempt.deletion_requested_at()))
    .bind(optional(attempt.unsettled_since()))
    .bind(optional(attempt.absence_proven_at()))
    .execute(connection)
    .await?
    .rows_affected();
    one_row(updated, || stale("provisioned resource", attempt.id(), attempt.revision()))
}

pub(crate) async fn token_insert(
    connection: &mut Connection,
    token: &BootstrapToken,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO bootstrap_tokens (id, project_id, provisioned_resource_id, kind, hash, \
         issued_at, expires_at, hard_expires_at, issued_by) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(token.id.as_uuid())
    .bind(token.project_id.as_uuid())
    .bind(token.provisioned_resource_id.as_uuid())
    .bind(token.kind.as_str())
    .bind(&token.hash.as_bytes()[..])
    .bind(Micros::from(token.issued_at))
    .bind(Micros::from(token.expires_at))
    .bind(Micros::from(token.hard_expires_at))
    .bind(token.issued_by.as_deref())
    .execute(connection)
    .await?;
    Ok(())
}

/// A token has no revision; its consumption must not be overwritten. Once a
/// node has consumed it, only a write that names that node succeeds.
pub(crate) async fn token_update(
    connection: &mut Connection,
    token: &BootstrapToken,
) -> Result<(), Failure> {
    let consumed = token.consumed.as_ref();
    let updated = sqlx::query(
        "UPDATE bootstrap_tokens SET expires_at = $2, consumed_at = $3, consumed_nonce = $4, \
         consumed_by_node_id = $5, consumed_public_key = $6, revoked_at = $7 \
         WHERE id = $1 AND (consumed_by_node_id IS NULL OR consumed_by_node_id = $5)",
    )
    .bind(token.id.as_uuid())
    .bind(Micros::from(token.expires_at))
    .bind(optional(consumed.map(|consumed| consumed.at)))
    .bind(consumed.and_then(|consumed| consumed.nonce.as_deref()))
    .bind(consumed.map(|consumed| consumed.node_id.as_uuid()))
    .bind(consumed.map(|consumed| &consumed.public_key[..]))
    .bind(optional(token.revoked_at))
    .execute(connection)
    .await?
    .rows_affected();
    one_row(updated, || {
        Refusal::new(
            ErrorKind::TokenConsumed,
            format!("bootstrap token {} was used by another node; issue a new one", token.id),
        )
    })
}

/// Its keys are unique: an enrolment that violates one is decided again.
pub(crate) async fn node_insert(connection: &mut Connection, node: &Node) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO nodes (id, revision, project_id, resource_id, provisioned_resource_id, \
         bootstrap_token_id, hostname, public_key, key_hash, capabilities, registered_at, \
         mesh_host, mesh_ip, binary_version, binary_checksum, agent_status) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
    )
    .bind(node.id.as_uuid())
    .bind(node.revision.0)
    .bind(node.project_id.as_uuid())
    .bind(node.resource_id.as_uuid())
    .bind(node.provisioned_resource_id.as_uuid())
    .bind(node.bootstrap_token_id.as_uuid())
    .bind(&node.hostname)
    .bind(&node.public_key[..])
    .bind(node.key_hash.as_ref().map(|hash| &hash.as_bytes()[..]))
    .bind(Json(&node.capabilities))
    .bind(Micros::from(node.registered_at))
    .bind(node.mesh.map(|mesh| mesh.host))
    .bind(node.mesh.map(|mesh| mesh.ip.to_string()))
    .bind(node.reported.version.as_deref())
    .bind(node.reported.checksum.as_deref())
    .bind(node.reported.status.as_deref())
    .execute(&mut *connection)
    .await?;
    mesh::take(connection, node).await?;
    Ok(())
}

/// Does not touch the heartbeat, which has its own statement and no part in
/// decisions, nor the address, which a node keeps for life.
pub(crate) async fn node_update(connection: &mut Connection, node: &Node) -> Result<(), Failure> {
    let deregistration = node.deregistration.as_ref();
    let updated = sqlx::query(sql!(
        "UPDATE nodes SET hostname = $3, key_hash = $4, capabilities = $5, drain_id = $6, \
         drain_requested_at = $7, deregistered_at = $8, deregistered_how = $9, \
         deregistered_by = $10, deregistered_reason = $11, revision = revision + 1, \
         updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE id = $1 AND revision = $2"
    ))
    .bind(node.id.as_uuid())
    .bind(node.revision.0)
    .bind(&node.hostname)
    .bind(node.key_hash.as_ref().map(|hash| &hash.as_bytes()[..]))
    .bind(Json(&node.capabilities))
    .bind(node.drain.map(|drain| drain.id.as_uuid()))
    .bind(optional(node.drain.map(|drain| drain.requested_at)))
    .bind(optional(deregistration.map(|deregistration| deregistration.at)))
    .bind(deregistration.map(|deregistration| deregistration.how.as_str()))
    .bind(deregistration.map(|deregistration| deregistration.by.as_str()))
    .bind(deregistration.and_then(|deregistration| deregistration.reason.as_deref()))
    .execute(&mut *connection)
    .await?
    .rows_affected();
    one_row(updated, || stale("node", node.id, node.revision))?;
    if deregistration.is_some() {
        mesh::release(connection, node).await?;
    }
    Ok(())
}

pub(crate) async fn deletion_insert(
    connection: &mut Connection,
    deletion: &Deletion,
) -> Result<(), Failure> {
    let inserted = sqlx::query(
        "INSERT INTO deletions (id, revision, kind, target_id, state, requested_by, reason, \
         members, requested_at, done_at, restorable_until) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
    )
    .bind(deletion.id.as_uuid())
    .bind(deletion.revision.0)
    .bind(&deletion.kind)
    .bind(deletion.target_id)
    .bind(deletion.state.as_str())
    .bind(&deletion.requested_by)
    .bind(&deletion.reason)
    .bind(Json(&deletion.members))
    .bind(Micros::from(deletion.requested_at))
    .bind(optional(deletion.done_at))
    .bind(optional(deletion.restorable_until))
    .execute(connection)
    .await?
    .rows_affected();
    one_row(inserted, || {
        Refusal::new(
            ErrorKind::RevisionStale,
            format!(
                "{} {} is being deleted already; read it again",
                deletion.kind, deletion.target_id
            ),
        )
    })
}

pub(crate) async fn deletion_update(
    connection: &mut Connection,
    deletion: &Deletion,
) -> Result<(), Failure> {
    let updated = sqlx::query(
        "UPDATE deletions SET state = $3, members = $4, done_at = $5, restorable_until = $6, \
         revision = revision + 1 WHERE id = $1 AND revision = $2",
    )
    .bind(deletion.id.as_uuid())
    .bind(deletion.revision.0)
    .bind(deletion.state.as_str())
    .bind(Json(&deletion.members))
    .bind(optional(deletion.done_at))
    .bind(optional(deletion.restorable_until))
    .execute(connection)
    .await?
    .rows_affected();
    one_row(updated, || stale("deletion", deletion.id, deletion.revision))
}

pub(crate) async fn blockers_replace(
    connection: &mut Connection,
    attempt: ProvisionedResourceId,
    blockers: &[Blocker],
) -> Result<(), Failure> {
    sqlx::query("DELETE FROM blockers WHERE subject_kind = $1 AND subject_id = $2")
        .bind(ProvisionedResourceId::KIND)
        .bind(attempt.as_uuid())
        .execute(&mut *connection)
        .await?;
    for blocker in blockers {
        blocker_put(connection, attempt, blocker).await?;
    }
    Ok(())
}

/// Adds a blocker, or updates the one of the same code, which keeps its age.
pub(crate) async fn blocker_put(
    connection: &mut Connection,
    attempt: ProvisionedResourceId,
    blocker: &Blocker,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO blockers (subject_kind, subject_id, code, since, owner, message, evidence, \
         next_retry_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (subject_kind, subject_id, code) DO UPDATE SET owner = excluded.owner, \
         message = excluded.message, evidence = excluded.evidence, \
         next_retry_at = excluded.next_retry_at",
    )
    .bind(ProvisionedResourceId::KIND)
    .bind(attempt.as_uuid())
    .bind(blocker.code.as_str())
    .bind(Micros::from(blocker.since))
    .bind(blocker.code.owner())
    .bind(&blocker.message)
    .bind(Json(&blocker.evidence))
    .bind(optional(blocker.next_retry_at))
    .execute(connection)
    .await?;
    Ok(())
}

/// Numbers the line itself; the resource row is locked, so nobody else does.
pub(crate) async fn history_append(
    connection: &mut Connection,
    attempt: ProvisionedResourceId,
    at: Timestamp,
    from: Option<Phase>,
    to: Phase,
    why: &str,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO phase_history (provisioned_resource_id, seq, at, from_phase, to_phase, why) \
         SELECT $1, coalesce(max(seq), 0) + 1, $2, $3, $4, $5 FROM phase_history \
         WHERE provisioned_resource_id = $1",
    )
    .bind(attempt.as_uuid())
    .bind(Micros::from(at))
    .bind(from.map(Phase::as_str))
    .bind(to.as_str())
    .bind(why)
    .execute(connection)
    .await?;
    Ok(())
}
