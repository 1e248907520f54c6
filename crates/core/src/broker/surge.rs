//! Surge: a replacement that makes the new attempt first. Two attempts of one resource are
//! there meanwhile: the one in use, which converges as ever, and the one beside it.
//!
//! *Expected flow.* A person asks ([`request`]) → an attempt is made beside the one in use →
//! it is Ready for the first time: the same commit brings it in use and begins the teardown
//! of the other ([`take_over`]) → that one is gone, and the surge is over ([`released`]).
//! *Ways out.* A retry takes an attempt that failed beside the one in use down, and tries
//! again. [`abort`] takes it down and leaves the one in use as it was. A deletion of the
//! resource takes both down, and is done when both are gone ([`take_other`]).
//! *Guarantees.* Nothing of the attempt in use is touched before the other one is Ready.
//! [`Surge`] is on the resource from the request until one of the two is gone, or both if
//! the resource goes. Until then exactly one of them is in use or comes in use.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::attempt::{Beside, DeletionRequest, NewAttempt, ProvisionedResource};
use crate::broker::decide::Outcome;
use crate::broker::event;
use crate::broker::phase::Phase;
use crate::broker::record::{follow, subject};
use crate::broker::redeclare::{self, Corrections, RedeclareSnapshot, Redeclared};
use crate::broker::replace;
use crate::broker::resource::Resource;
use crate::broker::retry;
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::teardown::{self, Order, Scope};
use crate::broker::update::{leaving, scheduled};
use crate::commit::{Commit, StateChange, Write};
use crate::deletion::door::{Ask, Doored, Passed, Requested, entry};
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::write::{self, enter};
use crate::error::{ErrorKind, Refusal};
use crate::event::{Event, derive_id};
use crate::ids::{DeletionId, ProvisionedResourceId, Revision};
use crate::precondition::Expected;
use crate::text::{Handle, Reason};
use crate::time::Timestamp;
use crate::topology::owner::{self, Verb};

const REPLACE: &str = "resource.replace";

/// Which attempt replaces which, who asked for it and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surge {
    /// In use when it was asked for.
    pub from: ProvisionedResourceId,
    /// Made beside it.
    pub to: ProvisionedResourceId,
    pub requested_by: String,
    pub requested_at: Timestamp,
    pub reason: Reason,
    /// How long `from` is kept on record once it is gone.
    pub retention: Duration,
    /// The teardown of one of the two while the resource stays. `None` before there is one,
    /// and when a deletion of the resource takes both down.
    pub deletion_id: Option<DeletionId>,
    /// No other attempt follows `to`.
    pub aborted: bool,
}

impl Surge {
    /// The second attempt, for one of the two.
    pub fn other_of(&self, attempt: ProvisionedResourceId) -> Option<ProvisionedResourceId> {
        match attempt {
            id if id == self.from => Some(self.to),
            id if id == self.to => Some(self.from),
            _ => None,
        }
    }
}

impl ResourceSnapshot {
    /// What its node is called.
    pub fn hostname(&self) -> &str {
        self.attempt.hostname().unwrap_or(self.resource.handle.as_str())
    }

    /// The attempt beside the one in use.
    pub fn beside(&self) -> Option<&Self> {
        self.resource.surge.as_ref()?;
        let is_beside = |one: &&Self| !one.attempt.is_in_use();
        Some(self).filter(is_beside).or(self.other.as_deref().filter(is_beside))
    }

    /// Of two attempts the one that people see: one that is not gone, while the other is.
    #[must_use]
    pub fn shown(mut self) -> Self {
        let is_gone = |one: &Self| one.attempt.phase() == Phase::Deleted;
        match self.other.take() {
            Some(other) if is_gone(&self) && !is_gone(&other) => {
                Self { other: Some(Box::new(self)), ..*other }
            }
            other => Self { other, ..self },
        }
    }

    /// Of two attempts the one that is being taken down, this one if both are.
    pub fn torn_down(&self) -> &Self {
        let leaves = |one: &Self| one.attempt.phase().is_deletion();
        match self.other.as_deref() {
            Some(other) if leaves(other) && !leaves(self) => other,
            _ => self,
        }
    }
}

/// The name of a node whose attempt stands beside another one: the handle and the number of
/// the attempt, as a DNS label.
pub fn hostname(handle: &Handle, number: i32) -> String {
    suffixed(handle, &format!("-{number}"))
}

/// The same where that name is taken.
fn distinct_hostname(handle: &Handle, number: i32, id: ProvisionedResourceId) -> String {
    let id = id.as_uuid().simple().to_string();
    // The beginning of the id is a time, which another one may share.
    suffixed(handle, &format!("-{number}-{}", &id[id.len() - 8..]))
}

fn suffixed(handle: &Handle, suffix: &str) -> String {
    let kept = handle.as_str().len().min(Handle::MAX_LENGTH - suffix.len());
    format!("{}{suffix}", handle.as_str()[..kept].trim_end_matches('-'))
}

/// Accepts the same for a resource that no workspace owns, see [`accept`].
pub fn request(
    snapshot: &Doored<RedeclareSnapshot>,
    corrections: &Corrections,
    ask: &Ask,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    owner::check(&snapshot.of.resource, Verb::Replace)?;
    accept(snapshot, corrections, ask, actor)
}

/// Accepts a replacement that makes the new attempt first. It passes what a replacement
/// passes: the attempt in use goes in the end.
pub(crate) fn accept(
    snapshot: &Doored<RedeclareSnapshot>,
    corrections: &Corrections,
    ask: &Ask,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let RedeclareSnapshot { resource, project, declared } = &snapshot.of;
    replace::stays(resource, ask.expected)?;
    let handle = &resource.resource.handle;
    let phase = resource.attempt.phase();
    if phase.is_deletion() || resource.resource.deletion_id.is_some() {
        return Err(leaving(resource));
    }
    if phase != Phase::Ready {
        let message = format!(
            "resource `{handle}` is {phase}, and only one that is Ready is replaced with two attempts at once; replace it without, or wait until it is Ready"
        );
        return Err(Refusal::new(ErrorKind::SurgeNeedsReady, message));
    }
    let redeclared = redeclare::check(resource, project, declared, corrections)?;
    allowed(resource, &redeclared)?;
    match replace::pass(&snapshot.door, resource, ask, actor)? {
        Passed::Begins(_) => {}
        Passed::Stopped(requested) => return Ok(*requested),
    }
    let next = made_beside(resource, declared.holder.is_some(), &redeclared)
        .map_err(|error| Refusal::invalid(error.field, error.problem))?;
    let surge = Surge {
        from: resource.attempt.id(),
        to: next.id(),
        requested_by: actor.name.clone(),
        requested_at: resource.now,
        reason: ask.reason.clone(),
        retention: snapshot.door.defaults.retention,
        deletion_id: None,
        aborted: false,
    };
    let commit = begun(resource, next, surge, &redeclared, actor);
    Ok(Requested::new(ask.deletion_id, commit))
}

/// Both versions have a say: the objects of both are there at once.
fn allowed(resource: &ResourceSnapshot, redeclared: &Redeclared<'_>) -> Result<(), Refusal> {
    let denies = [&*resource.blueprint, redeclared.blueprint].into_iter().find(|one| !one.surge);
    let Some(version) = denies else { return Ok(()) };
    let message = format!(
        "version `{}` of blueprint `{}` does not allow two attempts at once; replace resource `{}` without `--surge`, or publish a version with `surge: true`",
        version.version, version.slug, resource.resource.handle
    );
    Err(Refusal::new(ErrorKind::SurgeNotAllowed, message).at("surge"))
}

fn made_beside(
    resource: &ResourceSnapshot,
    is_taken: bool,
    redeclared: &Redeclared<'_>,
) -> Result<ProvisionedResource, crate::broker::attempt::InvalidAggregate> {
    let old = &resource.attempt;
    let (handle, number) = (&resource.resource.handle, resource.latest + 1);
    let id =
        derive_id(resource.now, &[b"surge", old.id().as_uuid().as_bytes(), &number.to_be_bytes()]);
    let id = ProvisionedResourceId::new(id);
    let hostname = match is_taken {
        true => distinct_hostname(handle, number, id),
        false => hostname(handle, number),
    };
    let correction = redeclared.correction.clone();
    ProvisionedResource::declare(
        NewAttempt {
            id,
            resource_id: old.resource_id(),
            project_id: old.project_id(),
            blueprint_version_id: correction.blueprint_version_id,
            cloud_credential_id: old.cloud_credential_id(),
            attempt: number,
            parameter_values: correction.parameter_values,
            partition: retry::partition(resource),
            beside: Some(Beside { hostname }),
        },
        resource.now,
    )
}

/// Writes the attempt beside the one in use.
fn begun(
    resource: &ResourceSnapshot,
    next: ProvisionedResource,
    surge: Surge,
    redeclared: &Redeclared<'_>,
    actor: &Actor,
) -> Commit {
    let (now, slot, old) = (resource.now, &resource.resource, &resource.attempt);
    let changed = redeclare::changed(old, &redeclared.correction);
    let mut details = json!({
        "surge": true, "attempt": next.attempt(), "beside": old.attempt(),
        "provisioned_resource_id": next.id(),
    });
    redeclare::describe(&mut details, resource, redeclared);
    let change = StateChange {
        subject: next.id().into(),
        revision: Revision::FIRST,
        at: now,
        from: None,
        to: next.phase().as_str(),
        why: format!("attempt {} is to replace attempt {}", next.attempt(), old.attempt()),
    };
    let about = About::new(slot.id).of(slot.project_id).at(slot.revision.next());
    let audit = AuditEntry::new(REPLACE, actor, about, now)
        .because(surge.reason.as_str())
        .with(details)
        .changing(change);
    let requested = event::announce(event::REQUESTED, &next, Revision::FIRST, now);
    let slot = Resource { surge: Some(surge), ..slot.clone() };
    Commit {
        wakes: vec![next.id().into()],
        writes: vec![
            Write::Broker(BrokerWrite::ResourceUpdate(slot)),
            Write::Broker(BrokerWrite::AttemptInsert(next)),
        ],
        events: vec![Event { changed, ..requested }],
        audit: vec![audit],
        ..Commit::default()
    }
}

/// Takes the attempt beside the one in use down; the one in use stays as it is. Repeated, it
/// changes nothing. While a retry takes the attempt down, no other one follows it any more.
pub fn abort(
    snapshot: &ResourceSnapshot,
    expected: Expected,
    deletion_id: DeletionId,
    retention: Duration,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let (now, resource) = (snapshot.now, &snapshot.resource);
    replace::exists(snapshot, expected)?;
    let (Some(surge), Some(beside)) = (&resource.surge, snapshot.beside()) else {
        return Err(nothing_to_abort(snapshot));
    };
    let aborted = |surge: &Surge| Surge { aborted: true, ..surge.clone() };
    let mut commit = match beside.attempt.request_deletion(now) {
        DeletionRequest::Accepted(leaving) => {
            let order = Order {
                scope: Scope::Attempt,
                deletion_id,
                reason,
                actor,
                verb: REPLACE,
                retention,
                purge_protected: false,
                resources: 0,
            };
            let mut commit = teardown::begin(beside, *leaving, order);
            let surge = Surge { deletion_id: Some(deletion_id), ..aborted(surge) };
            rewrite(&mut commit, resource, |slot| slot.surge = Some(surge));
            commit
        }
        DeletionRequest::AlreadyLeaving if surge.deletion_id.is_none() => {
            return Err(leaving(snapshot));
        }
        DeletionRequest::AlreadyLeaving if surge.aborted => return Ok(Commit::default()),
        // A retry takes it down.
        DeletionRequest::AlreadyLeaving => {
            let about =
                About::new(resource.id).of(resource.project_id).at(resource.revision.next());
            let entry = AuditEntry::new(REPLACE, actor, about, now).because(reason.as_str());
            let mut commit = Commit { audit: vec![entry], ..Commit::default() };
            rewrite(&mut commit, resource, |slot| slot.surge = Some(aborted(surge)));
            commit
        }
    };
    for entry in &mut commit.audit {
        if entry.details.is_null() {
            entry.details = json!({});
        }
        entry.details["abort"] = json!(true);
        entry.details["attempt"] = json!(beside.attempt.attempt());
    }
    Ok(commit)
}

fn nothing_to_abort(snapshot: &ResourceSnapshot) -> Refusal {
    let handle = &snapshot.resource.handle;
    let message = match snapshot.other.as_deref() {
        Some(old) => format!(
            "attempt {} of resource `{handle}` is Ready and in use, and attempt {} is being taken down; replace it again once that is gone",
            snapshot.attempt.attempt(),
            old.attempt.attempt()
        ),
        None => format!("resource `{handle}` has one attempt; there is no second one to take down"),
    };
    Refusal::new(ErrorKind::NothingToAbort, message)
}

/// Refuses what cannot be done while two attempts are there.
pub(crate) fn check_none(snapshot: &ResourceSnapshot) -> Result<(), Refusal> {
    match &snapshot.resource.surge {
        None => Ok(()),
        Some(_) => Err(under_way(snapshot)),
    }
}

pub(crate) fn under_way(snapshot: &ResourceSnapshot) -> Refusal {
    let handle = &snapshot.resource.handle;
    let number = |one: &ResourceSnapshot| one.attempt.attempt();
    let message = match (snapshot.beside(), snapshot.other.as_deref()) {
        (Some(beside), _) if beside.attempt.phase().is_deletion() => format!(
            "attempt {} of resource `{handle}`, which was to replace the one in use, is being taken down; wait until it is gone (`slipway explain {handle}`)",
            number(beside)
        ),
        (Some(beside), _) if beside.attempt.phase() == Phase::Failed => format!(
            "attempt {} of resource `{handle}`, which is to replace the one in use, failed; `slipway resource retry {handle}` tries it again, and `slipway resource replace {handle} --abort` takes it away",
            number(beside)
        ),
        (Some(beside), _) => format!(
            "attempt {} of resource `{handle}` is to replace the one in use, and is {}; wait until it is Ready, or `slipway resource replace {handle} --abort`",
            number(beside),
            beside.attempt.phase()
        ),
        (None, Some(old)) => format!(
            "attempt {} of resource `{handle}` was replaced and is still being taken down; wait until it is gone (`slipway explain {handle}`)",
            number(old)
        ),
        (None, None) => format!("two attempts of resource `{handle}` are there; ask again"),
    };
    Refusal::new(ErrorKind::SurgeUnderWay, message)
}

/// What a retry is about: the attempt beside the one in use, if there is one.
pub(crate) fn to_retry(snapshot: &ResourceSnapshot) -> Result<&ResourceSnapshot, Refusal> {
    if let Some(refusal) = scheduled(snapshot) {
        return Err(refusal);
    }
    match (&snapshot.resource.surge, snapshot.beside()) {
        (None, _) => Ok(snapshot),
        (Some(_), Some(beside)) if !beside.attempt.phase().is_deletion() => Ok(beside),
        (Some(_), _) => Err(under_way(snapshot)),
    }
}

/// Whether this attempt comes in use in this tick: it is Ready, and nothing is left to do
/// about it. State and not transition: if the mode withholds it, a later tick does it.
pub(crate) fn takes_over(snapshot: &ResourceSnapshot, phase: Phase, outcome: &Outcome) -> bool {
    is_due(snapshot, phase) && *outcome == Outcome::Done
}

/// The same before the outcome is known.
pub fn is_due(snapshot: &ResourceSnapshot, phase: Phase) -> bool {
    let of_this = |surge: &Surge| surge.to == snapshot.attempt.id() && surge.deletion_id.is_none();
    phase == Phase::Ready
        && !snapshot.attempt.is_in_use()
        && snapshot.resource.surge.as_ref().is_some_and(of_this)
}

/// Begins the teardown of the attempt that this one replaces, in the name of who asked.
pub(crate) fn take_over(commit: &mut Commit, snapshot: &ResourceSnapshot, actor: &Actor) {
    let (Some(surge), Some(old)) = (&snapshot.resource.surge, snapshot.other.as_deref()) else {
        return;
    };
    let DeletionRequest::Accepted(gone) = old.attempt.request_deletion(snapshot.now) else {
        return;
    };
    let asked = Actor::new(surge.requested_by.clone());
    let id = derive_id(snapshot.now, &[b"surge", snapshot.attempt.id().as_uuid().as_bytes()]);
    let order = Order {
        scope: Scope::Attempt,
        deletion_id: DeletionId::new(id),
        reason: &surge.reason,
        actor: &asked,
        verb: REPLACE,
        retention: surge.retention,
        purge_protected: false,
        resources: 1,
    };
    let deletion = teardown::deletion(old, order);
    let why =
        format!("attempt {} is Ready; asked for by {}", snapshot.attempt.attempt(), asked.name);
    let about = About::new(deletion.id).of(old.resource.project_id).at(deletion.revision);
    let audit = AuditEntry::new("deletion.start", actor, about, snapshot.now)
        .because(surge.reason.as_str())
        .changing(teardown::first_phase(old, &gone, why));
    commit.audit.push(audit);
    let marked = Surge { deletion_id: Some(deletion.id), ..surge.clone() };
    rewrite(commit, &snapshot.resource, |slot| slot.surge = Some(marked));
    write::begin(commit, deletion);
    teardown::take_down(commit, old, *gone);
}

/// A deletion of the resource takes the second attempt down, too; one that a surge takes
/// down already it takes over.
pub(crate) fn take_other(
    commit: &mut Commit,
    snapshot: &ResourceSnapshot,
    why: String,
    actor: &Actor,
) {
    let (Some(surge), Some(other)) = (&snapshot.resource.surge, snapshot.other.as_deref()) else {
        return;
    };
    match other.attempt.request_deletion(snapshot.now) {
        DeletionRequest::Accepted(gone) => {
            let change = teardown::first_phase(other, &gone, why);
            let about = subject(&gone, change.revision);
            let audit = AuditEntry::new("provisioned_resource.phase", actor, about, snapshot.now);
            commit.audit.push(audit.changing(change));
            teardown::take_down(commit, other, *gone);
        }
        DeletionRequest::AlreadyLeaving => {
            let own = |deletion: &&Deletion| Some(deletion.id) == surge.deletion_id;
            if let Some(deletion) = other.deletion.as_ref().filter(own) {
                let cancelled = Deletion { state: DeletionState::Cancelled, ..deletion.clone() };
                enter(commit, deletion, cancelled, snapshot.now);
            }
        }
    }
    if surge.deletion_id.is_some() {
        let surge = Surge { deletion_id: None, ..surge.clone() };
        rewrite(commit, &snapshot.resource, |slot| slot.surge = Some(surge));
    }
}

/// One of the two is gone. Answers false if the resource is gone with it.
pub(crate) fn released(
    commit: &mut Commit,
    snapshot: &ResourceSnapshot,
    surge: &Surge,
    other: &ResourceSnapshot,
    actor: &Actor,
) -> bool {
    let (now, gone) = (snapshot.now, &snapshot.attempt);
    let own = |deletion: &&Deletion| Some(deletion.id) == surge.deletion_id;
    let Some(deletion) = snapshot.deletion.as_ref().filter(own) else {
        // The resource goes, and its deletion ends with the other attempt. The row is written
        // so that this is decided under its lock: both may be found gone at once.
        let last = other.attempt.phase() == Phase::Deleted;
        if !last {
            let slot = snapshot.resource.clone();
            commit.writes.push(Write::Broker(BrokerWrite::ResourceUpdate(slot)));
        }
        return !last;
    };
    let retried = surge.to == gone.id() && !surge.aborted;
    // As in a retry of the one in use: the successor of a valid attempt is valid.
    let next = if retried { retry::successor(snapshot).ok() } else { None };
    let surge =
        next.as_ref().map(|next| Surge { to: next.id(), deletion_id: None, ..surge.clone() });
    let slot = Resource { surge, ..snapshot.resource.clone() };
    commit.writes.push(Write::Broker(BrokerWrite::ResourceUpdate(slot)));
    commit.audit.push(entry("deletion.done", deletion, actor, now));
    enter(commit, deletion, deletion.clone().done(now), now);
    if let Some(next) = next {
        follow(commit, gone, &next, actor, now);
    }
    true
}

/// Changes the resource that this commit writes, if it does not write it already.
fn rewrite(commit: &mut Commit, resource: &Resource, change: impl FnOnce(&mut Resource)) {
    let written = commit.writes.iter_mut().find_map(|write| match write {
        Write::Broker(BrokerWrite::ResourceUpdate(slot)) => Some(slot),
        _ => None,
    });
    match written {
        Some(slot) => change(slot),
        None => {
            let mut slot = resource.clone();
            change(&mut slot);
            commit.writes.push(Write::Broker(BrokerWrite::ResourceUpdate(slot)));
        }
    }
}

#[cfg(test)]
mod tests;
