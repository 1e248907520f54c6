//! Restoring what a deletion took: exactly its members, all of them or none. Something
//! that was deleted before by a deletion of its own stays deleted. The conflicts are
//! named all at once, each with what to do about it.
//!
//! The rows come back; what existed outside does not. A resource, whose substrate is
//! gone, becomes a new attempt with the old parameters, if the caller says so, and passes
//! what a declaration passes now.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::access::audit::Actor;
use crate::broker::attempt::ProvisionedResource;
use crate::broker::declare::{self, Desired};
use crate::broker::record;
use crate::broker::retry;
use crate::broker::snapshot::{DeclareSnapshot, ResourceSnapshot};
use crate::broker::{Labelled, resource};
use crate::catalog::Name;
use crate::catalog::label::{LabelKey, wake_labelled};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::door::entry;
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::write::{Restored, enter};
use crate::error::{ErrorKind, Refusal};
use crate::fleet::FleetName;
use crate::fleet::restore::{self as fleet, DeletedThing};
use crate::ids::DeletionId;
use crate::subject::{Subject, SubjectKind};
use crate::text::{Handle, Reason};
use crate::time::Timestamp;
use crate::topology::owner::{self, Verb};

/// What a request to restore asks for.
#[derive(Debug, Clone)]
pub struct Ask {
    pub reason: Reason,
    pub renames: Renames,
    /// Whether a resource whose substrate is gone becomes a new attempt.
    pub redeclare: bool,
}

/// The names under which things come back, where they are not the old ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renames {
    /// Of what was deleted.
    pub target: Option<String>,
    /// Of resources that were deleted with their project, by their old names.
    pub members: BTreeMap<String, String>,
}

/// A deletion with everything that its restore reads, all rows locked.
#[derive(Debug, Clone)]
pub struct RestoreSnapshot {
    pub now: Timestamp,
    pub deletion: Deletion,
    /// What was deleted; `None` if its row does not carry this deletion.
    pub target: Option<DeletedRow>,
    /// The resources among the members.
    pub resources: Vec<DeletedResource>,
    /// The things of Fleet among the members, with what was deleted.
    pub fleet: Vec<DeletedThing>,
}

/// What the tables of all deletable things tell about one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedRow {
    pub subject: Subject,
    pub name: String,
    /// The live thing that has the name which this one would come back with.
    pub holder: Option<Uuid>,
    /// What it cannot live without, and is deleted itself.
    pub needs: Vec<Needed>,
    /// The live cluster that has its identity.
    pub same_identity: Option<String>,
}

/// Something that is needed and not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    pub subject: Subject,
    pub name: String,
    /// Its deletion.
    pub deletion_id: Option<DeletionId>,
    /// It is there, and its deletion is scheduled or runs.
    pub leaving: bool,
}

/// A resource, and what its declaration would be checked against now.
#[derive(Debug, Clone)]
pub struct DeletedResource {
    pub snapshot: ResourceSnapshot,
    pub declared: DeclareSnapshot,
    /// The deleted ones of its credential, the cloud of that, and its blueprint.
    pub needs: Vec<Needed>,
}

/// The codes of conflicts that no declaration has.
const TAKEN: &str = ErrorKind::NameTaken.code();
const GONE: &str = ErrorKind::SubstrateGone.code();
const LEAVING: &str = ErrorKind::Leaving.code();
const SAME_IDENTITY: &str = ErrorKind::ClusterInUse.code();
const NEEDED: &str = "needed_deleted";

/// Why a restore is refused, in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub code: &'static str,
    pub kind: SubjectKind,
    pub id: Uuid,
    pub name: String,
    pub message: String,
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returning {
    pub subject: Subject,
    /// The name it comes back with.
    pub name: String,
    /// The number of the new attempt.
    pub attempt: Option<i32>,
}

/// What a restore would do, and what is in its way.
#[derive(Debug, Clone, Default)]
pub struct Restoration {
    pub returning: Vec<Returning>,
    pub conflicts: Vec<Conflict>,
    commit: Commit,
}

impl Restoration {
    /// The commit, unless there is a conflict.
    pub fn agreed(self, deletion: &Deletion) -> Result<Commit, Refusal> {
        const NAMED: usize = 5;
        if self.conflicts.is_empty() {
            return Ok(self.commit);
        }
        let gone = |conflict: &Conflict| conflict.code == GONE;
        let all_gone = self.conflicts.iter().all(gone);
        let target = format!("{} `{}`", deletion.target.kind, deletion.name);
        let more = match self.conflicts.len().checked_sub(NAMED) {
            Some(more @ 1..) => format!(" and {more} more"),
            _ => String::new(),
        };
        let shown = self.conflicts.iter().take(NAMED);
        let (kind, message) = if all_gone {
            let names: Vec<_> = shown.map(|conflict| format!("`{}`", conflict.name)).collect();
            let message = format!(
                "{target} cannot be restored as it was: the substrate of {}{more} is gone; add `--redeclare` to make it anew with the old parameters",
                names.join(", ")
            );
            (ErrorKind::SubstrateGone, message)
        } else {
            let messages: Vec<_> = shown.map(|conflict| conflict.message.as_str()).collect();
            let message = format!("{target} cannot be restored: {}{more}", messages.join("; "));
            (ErrorKind::RestoreConflict, message)
        };
        let listed = &self.conflicts[..self.conflicts.len().min(100)];
        let details = json!({ "conflicts": listed, "conflict_count": self.conflicts.len() });
        Err(Refusal::new(kind, message).with(details))
    }
}

/// Decides about a restore. Of one that is restored already it answers nothing to do.
pub fn restore(
    snapshot: &RestoreSnapshot,
    ask: &Ask,
    actor: &Actor,
) -> Result<Restoration, Refusal> {
    let RestoreSnapshot { now, deletion, .. } = snapshot;
    if deletion.state == DeletionState::Restored {
        return Ok(Restoration::default());
    }
    let Some(target) = restorable(snapshot)? else { return Err(nothing_left(deletion)) };
    let names = names(snapshot, &ask.renames)?;
    let mut found = Restoration::default();
    let new_name = |subject: Subject, old: &str| {
        names.get(&subject).map_or_else(|| old.to_owned(), String::clone)
    };
    let name = new_name(target.subject, &target.name);
    found.row_conflicts(target, &name);
    let is_resource = |subject: Subject| subject.kind == SubjectKind::Resource;
    if !is_resource(target.subject) {
        found.returning.push(Returning { subject: target.subject, name, attempt: None });
    }
    let mut handles = BTreeSet::new();
    for resource in &snapshot.resources {
        owner::check(&resource.snapshot, Verb::Restore)?;
        let subject = resource.snapshot.resource.id.into();
        let name = new_name(subject, resource.snapshot.resource.handle.as_str());
        if !handles.insert(name.clone()) {
            found.conflict(TAKEN, subject, &name, taken(subject, &name));
        }
        let attempt = found.resource(resource, &name, ask.redeclare);
        if let Some(next) = &attempt {
            let gone = resource.snapshot.attempt.clone().corrected(None);
            record::follow(&mut found.commit, &gone, next, actor, *now);
        }
        let attempt = attempt.map(|next| next.attempt());
        found.returning.push(Returning { subject, name, attempt });
    }
    for thing in snapshot.fleet.iter().filter(|thing| thing.subject != target.subject) {
        found.member(thing);
    }
    found.written(snapshot, ask, names, actor);
    Ok(found)
}

impl Restoration {
    fn conflict(&mut self, code: &'static str, subject: Subject, name: &str, message: String) {
        let Subject { kind, id } = subject;
        self.conflicts.push(Conflict { code, kind, id, name: name.to_owned(), message });
    }

    /// Whatever is deleted: its name, what contains it, and the identity of a cluster.
    fn row_conflicts(&mut self, row: &DeletedRow, name: &str) {
        let subject = row.subject;
        if row.holder.is_some() {
            self.conflict(TAKEN, subject, name, taken(subject, name));
        }
        if let Some(other) = &row.same_identity {
            let message = format!(
                "cluster `{other}` is registered for the same cluster by now; delete that first, or keep it instead of this one"
            );
            self.conflict(SAME_IDENTITY, subject, name, message);
        }
        self.needs(&row.needs);
    }

    /// Something of Fleet that was deleted with its generator.
    fn member(&mut self, thing: &DeletedThing) {
        let DeletedThing { subject, name, .. } = thing;
        if thing.holder.is_some() {
            let message = format!(
                "the name `{name}` is taken by another {} by now; rename or delete that first",
                subject.kind
            );
            self.conflict(TAKEN, *subject, name, message);
        }
        let name = name.clone();
        self.returning.push(Returning { subject: *subject, name, attempt: None });
    }

    /// Many resources may need the same, which is named once.
    fn needs(&mut self, needs: &[Needed]) {
        for Needed { subject, name, deletion_id, leaving } in needs {
            let code = if *leaving { LEAVING } else { NEEDED };
            if self.conflicts.iter().any(|one| (one.code, one.id) == (code, subject.id)) {
                continue;
            }
            let deletion = deletion_id.map(|id| id.to_string()).unwrap_or_default();
            let message = match leaving {
                true => format!(
                    "{} `{name}` is being deleted, or will be; cancel that first: `slipway deletion cancel {deletion}`",
                    subject.kind
                ),
                false => format!(
                    "{} `{name}` is needed and deleted; restore it first: `slipway deletion restore {deletion}`",
                    subject.kind
                ),
            };
            self.conflict(code, *subject, name, message);
        }
    }

    /// The next attempt of a resource, or why there is none.
    fn resource(
        &mut self,
        resource: &DeletedResource,
        name: &str,
        redeclare: bool,
    ) -> Option<ProvisionedResource> {
        let DeletedResource { snapshot, declared, needs } = resource;
        let subject = Subject::from(snapshot.resource.id);
        if !redeclare {
            let message = format!(
                "the substrate of resource `{name}` is gone; add `--redeclare` to make it anew with the old parameters"
            );
            self.conflict(GONE, subject, name, message);
            return None;
        }
        self.needs(needs);
        let next = successor(snapshot);
        let project = snapshot.resource.project_id.to_string();
        let credential = snapshot.attempt.cloud_credential_id().to_string();
        let desired = Desired {
            project: &project,
            blueprint: &snapshot.blueprint.slug,
            version: Some(&snapshot.blueprint.version),
            credential: Some(&credential),
            parameters: snapshot.attempt.parameter_values().as_map(),
        };
        let refusal = match declare::check(declared, desired) {
            Err(refusal) => refusal,
            Ok(_) => {
                return next
                    .map_err(|error| {
                        let message =
                            format!("resource `{name}` cannot be declared again: {error}");
                        self.conflict(ErrorKind::InvalidInput.code(), subject, name, message);
                    })
                    .ok();
            }
        };
        // A deleted credential, cloud or blueprint is named above, with its deletion.
        let is_needed = |fault: &&Refusal| {
            use ErrorKind::{BlueprintNotFound, CloudNotFound, CredentialNotFound};
            !needs.is_empty()
                && matches!(fault.kind, BlueprintNotFound | CloudNotFound | CredentialNotFound)
        };
        for fault in refusal.faults().filter(|fault| !is_needed(fault)) {
            let message = format!("resource `{name}` cannot be declared again: {}", fault.message);
            self.conflict(fault.kind.code(), subject, name, message);
        }
        None
    }

    /// The record, the marks, and what else changes.
    fn written(
        &mut self,
        snapshot: &RestoreSnapshot,
        ask: &Ask,
        names: BTreeMap<Subject, String>,
        actor: &Actor,
    ) {
        let RestoreSnapshot { now, deletion, .. } = snapshot;
        let mut details = json!({ "members": self.returning.len() });
        if ask.redeclare {
            details["redeclared"] = json!(snapshot.resources.len());
        }
        if let Some(name) = names.get(&deletion.target) {
            details["renamed"] = json!({ "from": deletion.name, "to": name });
        }
        let commit = &mut self.commit;
        let audit = entry("deletion.restore", deletion, actor, *now);
        commit.audit.push(audit.because(ask.reason.as_str()).with(details));
        if deletion.target.kind == SubjectKind::Label {
            let key = names.get(&deletion.target).unwrap_or(&deletion.name);
            let woken = LabelKey::parse("rename", key).ok().map(Labelled::Label);
            commit.writes.extend(woken.map(wake_labelled));
        }
        commit.writes.push(Write::Deletion(DeletionWrite::Restore(Restored {
            deletion_id: deletion.id,
            kind: deletion.target.kind,
            renamed: names.into_iter().collect(),
        })));
        let returned = fleet::returned(&snapshot.fleet, deletion.id, deletion.target, actor, *now);
        commit.writes.extend(returned.writes);
        commit.events.extend(returned.events);
        commit.audit.extend(returned.audit);
        // It could be restored until it was.
        let after = Deletion {
            state: DeletionState::Restored,
            restorable_until: Some(*now),
            ..deletion.clone()
        };
        enter(commit, deletion, after, *now);
    }
}

fn taken(subject: Subject, name: &str) -> String {
    let kind = subject.kind;
    format!("the name `{name}` is taken by another {kind}; choose one with `--rename`")
}

/// The attempt that follows the last one, with the parameters that it had.
fn successor(
    snapshot: &ResourceSnapshot,
) -> Result<ProvisionedResource, crate::broker::attempt::InvalidAggregate> {
    let attempt = snapshot.attempt.clone().corrected(None);
    retry::successor(&ResourceSnapshot { attempt, ..snapshot.clone() })
}

/// Refuses what no restore brings back, whatever the conflicts.
fn restorable(snapshot: &RestoreSnapshot) -> Result<Option<&DeletedRow>, Refusal> {
    let RestoreSnapshot { now, deletion, target, .. } = snapshot;
    let id = deletion.id;
    let problem = match deletion.state {
        _ if deletion.target.kind == SubjectKind::ProvisionedResource => {
            "it was the teardown of a retry or a replacement, and its resource lives on".to_owned()
        }
        DeletionState::Done => match deletion.restorable_until {
            Some(until) if *now < until => return Ok(target.as_ref()),
            Some(until) => format!("that was possible until {until}"),
            None => "it has no time until which that is possible".to_owned(),
        },
        DeletionState::Scheduled => {
            format!("it has not begun; keep it with `slipway deletion cancel {id}`")
        }
        DeletionState::Running => {
            "it is being taken down; wait until its deletion is done".to_owned()
        }
        DeletionState::Cancelled => "its deletion was cancelled, so it was never gone".to_owned(),
        DeletionState::Purging | DeletionState::Purged => {
            "it is purged, and nothing can be brought back".to_owned()
        }
        // The caller answered it.
        DeletionState::Restored => "it was restored".to_owned(),
    };
    Err(not_restorable(deletion, &problem))
}

fn nothing_left(deletion: &Deletion) -> Refusal {
    not_restorable(deletion, "its row is gone, or belongs to another deletion")
}

fn not_restorable(deletion: &Deletion, problem: &str) -> Refusal {
    let Deletion { target, name, .. } = deletion;
    let message = format!("{} `{name}` cannot be restored: {problem}", target.kind);
    Refusal::new(ErrorKind::NotRestorable, message)
}

/// The new names by what gets them, checked as the names of their kinds are.
fn names(
    snapshot: &RestoreSnapshot,
    renames: &Renames,
) -> Result<BTreeMap<Subject, String>, Refusal> {
    let mut names = BTreeMap::new();
    let target = snapshot.deletion.target;
    if let Some(name) = &renames.target {
        match target.kind {
            SubjectKind::Resource => handle(name).map(drop)?,
            SubjectKind::Label => LabelKey::parse("rename", name).map(drop)?,
            SubjectKind::Generator
            | SubjectKind::Stack
            | SubjectKind::Template
            | SubjectKind::Agent => FleetName::parse("rename", name).map(drop)?,
            _ => Name::parse("rename", name).map(drop)?,
        }
        names.insert(target, name.clone());
    }
    for (old, new) in &renames.members {
        let is_old = |resource: &&resource::Resource| resource.handle.as_str() == old;
        let mut resources = snapshot.resources.iter().map(|found| &found.snapshot.resource);
        let Some(member) = resources.find(is_old) else {
            let problem =
                format!("names `{old}`, and no resource of that name was deleted with it");
            return Err(Refusal::invalid("rename_members", problem));
        };
        handle(new).map_err(|refusal| refusal.at("rename_members"))?;
        names.insert(member.id.into(), new.clone());
    }
    Ok(names)
}

fn handle(text: &str) -> Result<Handle, Refusal> {
    Handle::parse(text).map_err(|invalid| Refusal::invalid("rename", invalid.problem))
}

#[cfg(test)]
mod tests;
