//! Judges a scan: compares each object of ours with the rows, and each row with
//! the objects.
//!
//! The order of the two reads is part of the rule: objects first, rows after. A
//! row is written before its object is created, so every object that was
//! created for a row finds that row. In the opposite order every object created
//! in between would seem unclaimed. Rows that lack an object cannot be ordered
//! the same way, and a scan is not one moment. So a finding counts only when it
//! was observed twice, at least a lease apart ([`is_confirmed`]): a worker that
//! was busy with the object at first is done by then, or has lost its claim.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::access::role::Role;
use crate::broker::phase::Phase;
use crate::deletion::leak::{
    Claimant, Finding, FindingKind, Found, Leak, LeakSnapshot, ObjectRef, Removal, Resolved,
};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ClusterId, ProvisionedResourceId};
use crate::subject::{Subject, SubjectKind};
use crate::text::{Reason, storable, storable_value};
use crate::time::Timestamp;

/// The judgement of a page of objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judged {
    pub findings: Vec<Finding>,
    /// Attempts whose object is where it belongs.
    pub at_home: Vec<ProvisionedResourceId>,
}

/// Judges a page of objects of one cluster. `rows` are those of the attempts
/// that the objects name, read after the objects.
pub fn judge_objects(
    cluster: ClusterId,
    page: &[Found],
    rows: &HashMap<ProvisionedResourceId, Claimant>,
) -> Judged {
    let mut judged = Judged::default();
    for object in page {
        let row = object.provisioned_resource_id.and_then(|id| rows.get(&id));
        let kind = match row {
            None => FindingKind::UnclaimedObject,
            Some(row) => match &row.home {
                // The project left the cluster, so no loop observes the object there.
                None if row.phase == Some(Phase::Deleted) => FindingKind::UnclaimedObject,
                // An unplaced row has no home that the object could contradict.
                None => continue,
                Some(home) if (home.0, &home.1) != (cluster, &object.object_ref) => {
                    FindingKind::DuplicateObject
                }
                Some(_) => {
                    judged.at_home.push(row.id);
                    if row.phase != Some(Phase::Deleted) {
                        continue;
                    }
                    FindingKind::ObjectOfDeleted
                }
            },
        };
        judged.findings.push(of_object(cluster, kind, object));
    }
    judged
}

/// Judges rows of one cluster against a complete scan of it: `at_home` are the
/// attempts whose object was observed where it belongs.
pub fn judge_rows(
    cluster: ClusterId,
    rows: &[Claimant],
    at_home: &HashSet<ProvisionedResourceId>,
) -> Vec<Finding> {
    let missing = rows.iter().filter(|row| expects_object(row) && !at_home.contains(&row.id));
    missing
        .filter_map(|row| match &row.home {
            Some((home, object_ref)) if *home == cluster => Some((row, object_ref)),
            _ => None,
        })
        .map(|(row, object_ref)| Finding {
            key: key(cluster, FindingKind::MissingObject, object_ref, row.id.as_uuid().as_bytes()),
            kind: FindingKind::MissingObject,
            subject: row.id.into(),
            object_ref: object_ref.clone(),
            uid: None,
            evidence: json!({ "phase": row.phase }),
        })
        .collect()
}

/// The phases that are reached only with the object observed, and end when it
/// is missing. In others it may not be created yet, or be gone already.
pub const EXPECTING: [Phase; 2] = [Phase::Enrolling, Phase::Ready];

fn expects_object(row: &Claimant) -> bool {
    row.phase.is_some_and(|phase| EXPECTING.contains(&phase))
}

/// Whether a finding that was first observed then and is observed now counts.
pub fn is_confirmed(first_seen: Timestamp, now: Timestamp, apart: Duration) -> bool {
    now.since(first_seen) >= apart
}

fn of_object(cluster: ClusterId, kind: FindingKind, object: &Found) -> Finding {
    let key = key(cluster, kind, &object.object_ref, object.uid.as_bytes());
    Finding {
        key,
        kind,
        subject: object
            .provisioned_resource_id
            .map_or(Subject::new(SubjectKind::LeakRecord, key), Into::into),
        object_ref: ObjectRef {
            namespace: storable(&object.object_ref.namespace),
            name: storable(&object.object_ref.name),
        },
        uid: Some(storable(&object.uid)),
        evidence: storable_value(&json!({
            "claim_token": object.claim_token,
            "group": object.group,
            "object": object.evidence,
        })),
    }
}

/// The same thing has the same key, whoever finds it and whenever.
fn key(cluster: ClusterId, kind: FindingKind, object_ref: &ObjectRef, which: &[u8]) -> Uuid {
    let mut hasher = Sha256::new();
    let cluster = cluster.as_uuid();
    let parts = [
        cluster.as_bytes().as_slice(),
        kind.as_str().as_bytes(),
        object_ref.namespace.as_bytes(),
        object_ref.name.as_bytes(),
        which,
    ];
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// The writes of a decision about one leak.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakCommit {
    pub leak: Leak,
    pub audit: AuditEntry,
}

/// The observation of a leak's object, right before a decision about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// Proven absent, or nothing tells where it could be.
    Gone,
    There,
    Unknown(String),
}

/// A person resolves the leak. Refused while the object is observed or cannot
/// be read: "could not be read" is not "gone". What was abandoned may never be read
/// again, so there the word of a person who checked counts.
pub fn resolve(
    snapshot: &LeakSnapshot,
    presence: &Presence,
    reason: &Reason,
    actor: &Actor,
) -> Result<LeakCommit, Refusal> {
    let leak = open(snapshot)?;
    let expected = leak.finding_kind() == Some(FindingKind::MissingObject)
        && snapshot.claimant.as_ref().is_some_and(expects_object);
    let not_gone = |problem: String| Err(Refusal::new(ErrorKind::LeakNotGone, problem));
    match presence {
        Presence::Unknown(_) if leak.is_abandoned() => {
            Ok(end(leak, snapshot.now, actor, reason.as_str()))
        }
        Presence::Unknown(why) => not_gone(format!(
            "leak {} cannot be resolved, because its object cannot be read: {why}",
            leak.id
        )),
        Presence::There if !expected => not_gone(format!(
            "the object of leak {} is still there; remove it first (`slipway leaks remove`, or by hand)",
            leak.id
        )),
        Presence::Gone if expected => not_gone(format!(
            "the object of leak {} is still missing, and its resource wants it; `slipway resource explain` says what it waits for",
            leak.id
        )),
        Presence::Gone | Presence::There => Ok(end(leak, snapshot.now, actor, reason.as_str())),
    }
}

/// A person asks to remove the object. Allowed only for an object that no row
/// claims; the resource loop takes care of the others. Of one that says that it is a server of a
/// live group only an admin can say that nobody misses it: no gate knows it.
pub fn request_removal(
    snapshot: &LeakSnapshot,
    caller: Role,
    reason: &Reason,
    actor: &Actor,
) -> Result<LeakCommit, Refusal> {
    let leak = open(snapshot)?;
    let refuse = |problem: &str| {
        let text = format!("leak {} is not removed from here: {problem}", leak.id);
        Err(Refusal::new(ErrorKind::LeakNotRemovable, text))
    };
    if leak.is_of_tenant() {
        return refuse(leak.remedy());
    }
    let kind = leak.finding_kind();
    if !kind.is_some_and(FindingKind::is_removable) {
        return refuse("its object belongs to a resource; delete or explain that one");
    }
    if leak.uid.is_none() || leak.object_ref.is_none() || leak.provisioned_resource_id().is_none() {
        return refuse(
            "its object names no attempt, so its owner is unknown; remove it by hand, then `slipway leaks resolve`",
        );
    }
    if claims(snapshot) {
        return refuse("a row claims its object now; explain that resource");
    }
    if let Some(owner) = snapshot.owner.as_ref().filter(|_| caller < Role::Admin) {
        let message = format!(
            "the object of leak {} says that it is a server of group `{}` ({}) of workspace `{}`; an admin removes it, after looking at what depends on it",
            leak.id, owner.group, owner.role, owner.workspace
        );
        return Err(Refusal::new(ErrorKind::OwnedByWorkspace, message).with(owner.details()));
    }
    let removal =
        Removal { at: snapshot.now, by: actor.name.clone(), reason: reason.as_str().to_owned() };
    let audit = audit("leak.remove", leak, actor, snapshot.now).because(reason.as_str());
    Ok(LeakCommit { leak: Leak { removal: Some(removal), ..leak.clone() }, audit })
}

/// Whether a requested removal is still allowed. Checked again right before the
/// object is touched.
pub fn may_remove(snapshot: &LeakSnapshot) -> bool {
    snapshot.leak.is_open() && snapshot.leak.removal.is_some() && !claims(snapshot)
}

/// Whether the row of the leak's attempt claims the object where it is.
fn claims(snapshot: &LeakSnapshot) -> bool {
    let leak = &snapshot.leak;
    snapshot.claimant.as_ref().is_some_and(|row| {
        match (&row.home, leak.cluster_id, &leak.object_ref) {
            (Some((cluster, home)), Some(found_on), Some(object_ref)) => {
                (*cluster, home) == (found_on, object_ref)
            }
            (None, ..) if row.phase == Some(Phase::Deleted) => false,
            // An unknown home is no proof that the object does not belong here.
            _ => true,
        }
    })
}

/// Ends a leak whose object was removed, or that a scan no longer finds.
pub fn vanished(leak: &Leak, now: Timestamp, actor: &Actor) -> LeakCommit {
    let how = match (&leak.removal, leak.finding_kind()) {
        (Some(removal), _) => format!("removed for {}: {}", removal.by, removal.reason),
        (None, Some(FindingKind::MissingObject)) => {
            "the object is there again, or is not expected any more".to_owned()
        }
        (None, _) => "the object is not there any more, or a row claims it".to_owned(),
    };
    end(leak, now, actor, &how)
}

fn open(snapshot: &LeakSnapshot) -> Result<&Leak, Refusal> {
    if snapshot.leak.is_open() {
        return Ok(&snapshot.leak);
    }
    Err(Refusal::new(
        ErrorKind::LeakResolved,
        format!("leak {} is resolved already; nothing was changed", snapshot.leak.id),
    ))
}

fn end(leak: &Leak, now: Timestamp, actor: &Actor, resolution: &str) -> LeakCommit {
    let resolved =
        Resolved { at: now, by: Some(actor.name.clone()), resolution: Some(resolution.to_owned()) };
    LeakCommit {
        audit: audit("leak.resolve", leak, actor, now).because(resolution),
        leak: Leak { resolved: Some(resolved), ..leak.clone() },
    }
}

fn audit(verb: &'static str, leak: &Leak, actor: &Actor, now: Timestamp) -> AuditEntry {
    let details: Value = json!({
        "kind": leak.kind,
        "subject_id": leak.subject.id,
        "cluster": leak.cluster,
        "namespace": leak.object_ref.as_ref().map(|object_ref| &object_ref.namespace),
        "name": leak.object_ref.as_ref().map(|object_ref| &object_ref.name),
        "uid": leak.uid,
    });
    AuditEntry::new(verb, actor, About::new(leak.id), now).with(details)
}

#[cfg(test)]
mod tests;
