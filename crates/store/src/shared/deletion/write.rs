//! Writes deletions, and the leak records of decisions about resources and placements: what
//! still exists outside, or may, and when it was gone. By sets.

use serde_json::json;
use slipway_core::deletion::DeletionWrite;
use slipway_core::deletion::leak::LeakRecord;
use slipway_core::deletion::record::Deletion;
use slipway_core::{ErrorKind, Refusal};
use slipway_durable::claim::micros;
use slipway_durable::database::End;
use uuid::Uuid;

use super::json_values::JsonTime;
use super::row_set::RowSet;
use super::{Connection, brakes, marks, plans, protections, restore, settings, writes};
use crate::failure::Failure;
use crate::id_list::IdList;

/// The writes of a set of commits.
#[derive(Default)]
pub(crate) struct Writes<'a> {
    new_deletions: Vec<&'a Deletion>,
    deletions: Vec<&'a Deletion>,
    /// What a request about one thing writes beside its record.
    rare: Vec<&'a DeletionWrite>,
    leaks: Vec<&'a LeakRecord>,
    proven_gone: Vec<Uuid>,
}

impl<'a> Writes<'a> {
    pub(crate) fn add(&mut self, write: &'a DeletionWrite) {
        match write {
            DeletionWrite::DeletionInsert(deletion) => self.new_deletions.push(deletion),
            DeletionWrite::DeletionUpdate(deletion) => self.deletions.push(deletion),
            DeletionWrite::Mark(_)
            | DeletionWrite::MarkMembers(_)
            | DeletionWrite::Unmark(..)
            | DeletionWrite::Restore(_)
            | DeletionWrite::Protect(_)
            | DeletionWrite::Unprotect(_)
            | DeletionWrite::Brake(_)
            | DeletionWrite::PlanInsert(_)
            | DeletionWrite::PlanUse(_)
            | DeletionWrite::PlanApprove(_)
            | DeletionWrite::SettingInsert(_)
            | DeletionWrite::SettingUpdate(_)
            | DeletionWrite::SettingRemove(_) => self.rare.push(write),
            DeletionWrite::LeakInsert(leak) => self.leaks.push(leak),
            DeletionWrite::LeaksResolve(subject) => self.proven_gone.push(subject.id),
        }
    }

    pub(crate) async fn apply(&self, connection: &mut Connection) -> Result<(), Failure> {
        DELETIONS_INSERT.write_guarded(connection, &self.new_deletions, deleted_already).await?;
        let stale = |row: &Deletion| writes::stale("deletion", row.id, row.revision);
        DELETIONS_UPDATE.write_guarded(connection, &self.deletions, stale).await?;
        for write in &self.rare {
            match write {
                DeletionWrite::Mark(mark) => marks::mark(connection, mark).await?,
                DeletionWrite::MarkMembers(members) => marks::members(connection, members).await?,
                DeletionWrite::Unmark(id, kind) => marks::unmark(connection, *id, *kind).await?,
                DeletionWrite::Restore(row) => restore::unmark(connection, row).await?,
                DeletionWrite::Protect(row) => protections::put(connection, row).await?,
                DeletionWrite::Unprotect(row) => protections::remove(connection, *row).await?,
                DeletionWrite::Brake(row) => brakes::update(connection, row).await?,
                DeletionWrite::PlanInsert(plan) => plans::insert(connection, plan).await?,
                DeletionWrite::PlanUse(row) => plans::used(connection, row).await?,
                DeletionWrite::PlanApprove(row) => plans::approved(connection, row).await?,
                DeletionWrite::SettingInsert(row) => {
                    settings::put(connection, &settings::INSERT, row).await?;
                }
                DeletionWrite::SettingUpdate(row) => {
                    settings::put(connection, &settings::UPDATE, row).await?;
                }
                DeletionWrite::SettingRemove(id) => settings::remove(connection, *id).await?,
                _ => {}
            }
        }
        leaks_insert(connection, &self.leaks).await?;
        leaks_resolve(connection, &self.proven_gone).await
    }
}

const DELETIONS_INSERT: RowSet<Deletion> = insert_rows!(guarded, "deletions", |deletion: &Deletion| {
    id: uuid = deletion.id,
    revision: bigint = deletion.revision,
    kind: text = deletion.target.kind,
    target_id: uuid = deletion.target.id,
    state: text = deletion.state,
    requested_by: text = deletion.requested_by,
    reason: text = deletion.reason,
    name: text = deletion.name,
    project_id: uuid = deletion.project_id,
    parent_id: uuid = deletion.parent,
    cascade: integer = i32::from(deletion.cascade),
    resources: bigint = deletion.resources,
    keep: integer = i32::from(deletion.fleet.keep),
    stacks: bigint = deletion.fleet.stacks,
    requested_at: time = deletion.requested_at,
    scheduled_for: time = deletion.scheduled_for,
    done_at: time = deletion.done_at,
    retention: bigint = micros(deletion.retention),
    restorable_until: time = deletion.restorable_until,
    purge_protected: integer = i32::from(deletion.purge_protected),
    ended_at: time = deletion.ended_at,
});

fn deleted_already(deletion: &Deletion) -> Refusal {
    Refusal::new(
        ErrorKind::RevisionStale,
        format!(
            "{} {} is being deleted already; read it again",
            deletion.target.kind, deletion.target.id
        ),
    )
}

const DELETIONS_UPDATE: RowSet<Deletion> = update_rows!(undated, "deletions" by id, |deletion: &Deletion| {
    state: text = deletion.state,
    resources: bigint = deletion.resources,
    stacks: bigint = deletion.fleet.stacks,
    erases: integer = i32::from(deletion.fleet.erases),
    scheduled_for: time = deletion.scheduled_for,
    done_at: time = deletion.done_at,
    restorable_until: time = deletion.restorable_until,
    ended_at: time = deletion.ended_at,
});

/// Records a leak that no decision found.
pub(crate) async fn leak_record(
    connection: &mut Connection,
    leak: &LeakRecord,
) -> Result<End<()>, Failure> {
    leaks_insert(connection, &[leak]).await?;
    Ok(End::Commit(()))
}

/// The same finding has the same id, and is recorded once. A resolved one that
/// is found again is reopened; the time it was first found stays.
async fn leaks_insert(connection: &mut Connection, leaks: &[&LeakRecord]) -> Result<(), Failure> {
    const INSERT: &str = concat!(
        "INSERT INTO leak_records (id, kind, subject_kind, subject_id, found_at, evidence, \
         cluster_id, cluster, namespace, object_name, object_uid) \
         SELECT given.id, given.kind, given.subject_kind, given.subject_id, given.found_at, \
         coalesce(given.evidence, 'null'), given.cluster_id, given.cluster, given.namespace, \
         given.object_name, given.object_uid FROM ",
        rows_from_json!(
            id: uuid,
            kind: text,
            subject_kind: text,
            subject_id: uuid,
            found_at: time,
            evidence: json,
            cluster_id: uuid,
            cluster: text,
            namespace: text,
            object_name: text,
            object_uid: text,
        ),
        " WHERE true ON CONFLICT (id) DO UPDATE SET resolved_at = NULL, resolved_by = NULL, \
         resolution = NULL, evidence = excluded.evidence \
         WHERE leak_records.resolved_at IS NOT NULL",
    );
    let rows: Vec<_> = leaks
        .iter()
        .map(|leak| {
            let known = leak.last_known.as_ref();
            let object_ref = known.and_then(|known| known.object_ref.as_ref());
            json!({
                "id": leak.id,
                "kind": leak.kind,
                "subject_kind": leak.subject.kind,
                "subject_id": leak.subject.id,
                "found_at": JsonTime::from(leak.found_at),
                "evidence": leak.evidence,
                "cluster_id": known.map(|known| known.cluster_id),
                "cluster": known.and_then(|known| known.cluster.as_ref()),
                "namespace": object_ref.map(|object_ref| &object_ref.namespace),
                "object_name": object_ref.map(|object_ref| &object_ref.name),
                "object_uid": known.and_then(|known| known.uid.as_ref()),
            })
        })
        .collect();
    Ok(writes::write(connection, INSERT, &rows).await?)
}

/// Resolves what the resource loop recorded about these subjects. The leak scan
/// resolves its own records (those with a finding): a duplicate elsewhere is
/// not gone because the object in its namespace is. What was kept in the cloud on purpose
/// outlives its attempt, and a person resolves it.
async fn leaks_resolve(connection: &mut Connection, subjects: &[Uuid]) -> Result<(), Failure> {
    if subjects.is_empty() {
        return Ok(());
    }
    sqlx::query(sql!(
        "UPDATE leak_records SET resolved_at = ",
        now,
        " WHERE resolved_at IS NULL AND finding IS NULL AND kind <> 'orphaned_external' \
         AND subject_id ",
        (one_of "$1")
    ))
    .bind(IdList(subjects.to_vec()))
    .execute(connection)
    .await?;
    Ok(())
}
