//! Shared by the decisions about the catalog: the audit entry, the record of a
//! deletion, and refusals that differ by a word.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::access::audit::{Actor, AuditEntry};
use crate::catalog::CatalogWrite;
use crate::commit::{Commit, Write};
use crate::deletion::record::{Deletion, DeletionState, Member};
use crate::error::{ErrorKind, Refusal};
use crate::event::derive_id;
use crate::ids::{AuditEntryId, DeletionId, ProjectId, Revision};
use crate::kind::Kind;
use crate::precondition::Expected;
use crate::text::Reason;
use crate::time::Timestamp;

/// A request to delete an entry of the catalog.
#[derive(Debug, Clone)]
pub struct Removal {
    pub deletion_id: DeletionId,
    pub reason: Reason,
    pub expected: Expected,
}

/// The subject of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    pub(crate) kind: &'static str,
    pub(crate) id: Uuid,
    pub(crate) project_id: Option<ProjectId>,
}

impl About {
    pub(crate) fn id<K: Kind>(id: K::Id) -> Self {
        Self { kind: K::KIND, id: id.into(), project_id: None }
    }

    pub(crate) fn of(self, project_id: ProjectId) -> Self {
        Self { project_id: Some(project_id), ..self }
    }
}

pub(crate) fn about<K: Kind>(subject: &K) -> About {
    About::id::<K>(subject.id())
}

/// One write with its audit entry. The id of the entry derives from the time
/// and the subject, so that a transaction that runs again writes the same one.
pub(crate) fn audited(
    write: CatalogWrite,
    verb: &'static str,
    about: About,
    actor: &Actor,
    now: Timestamp,
    details: Value,
) -> Commit {
    let project = about.project_id.map_or(Uuid::nil(), ProjectId::as_uuid);
    let parts: [&[u8]; 5] = [
        b"audit",
        verb.as_bytes(),
        about.id.as_bytes(),
        project.as_bytes(),
        &now.as_micros().to_be_bytes(),
    ];
    let entry = AuditEntry {
        id: AuditEntryId::new(derive_id(now, &parts)),
        at: now,
        actor: actor.name.clone(),
        verb,
        subject_kind: about.kind,
        subject_id: about.id,
        project_id: about.project_id,
        reason: None,
        details,
        correlation_id: actor.correlation_id.clone(),
    };
    Commit {
        writes: vec![Write::Catalog(Box::new(write))],
        audit: vec![entry],
        ..Commit::default()
    }
}

/// The same for a deletion, with its record. An entry of the catalog has
/// nothing outside that must go first, so the deletion is done at once.
pub(crate) fn removed(
    write: CatalogWrite,
    verb: &'static str,
    about: About,
    actor: &Actor,
    now: Timestamp,
    removal: &Removal,
) -> Commit {
    let mut commit =
        audited(write, verb, about, actor, now, json!({ "deletion_id": removal.deletion_id }));
    for entry in &mut commit.audit {
        entry.reason = Some(removal.reason.as_str().to_owned());
    }
    commit.writes.push(Write::DeletionInsert(Deletion {
        id: removal.deletion_id,
        kind: about.kind.to_owned(),
        target_id: about.id,
        state: DeletionState::Done,
        requested_by: actor.name.clone(),
        reason: removal.reason.as_str().to_owned(),
        members: vec![Member { kind: about.kind.to_owned(), id: about.id }],
        revision: Revision::FIRST,
        requested_at: now,
        done_at: Some(now),
        restorable_until: None,
    }));
    commit
}

/// The request names nothing that exists.
pub(crate) fn unknown(error: ErrorKind, kind: &str) -> Refusal {
    Refusal::new(error, format!("there is no such {kind}; check its name or id"))
}

/// The row of the snapshot, if the caller expects its revision.
pub(crate) fn existing<K: Kind>(found: &Option<K>, expected: Expected) -> Result<&K, Refusal> {
    let row = found.as_ref().ok_or_else(|| unknown(K::MISSING, K::KIND))?;
    expected.check(K::KIND, row.revision())?;
    Ok(row)
}

/// Refuses if the snapshot of a create found the holder of the name.
pub(crate) fn free<K: Kind>(holder: &Option<K>, field: &str, name: &str) -> Result<(), Refusal> {
    let Some(holder) = holder else { return Ok(()) };
    let id: Uuid = holder.id().into();
    Err(Refusal::new(
        ErrorKind::NameTaken,
        format!("there is a {} `{name}` already; choose another name", K::KIND),
    )
    .at(field)
    .with(json!({ "id": id })))
}
