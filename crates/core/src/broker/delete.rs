//! Deleting a resource: its substrate is taken down in order, at once or when its grace
//! ends. Until then nothing changes, and the loop converges as before.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::attempt::DeletionRequest;
use crate::broker::resource::Resource;
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::surge::take_other;
use crate::broker::teardown::{self, Order, Scope};
use crate::commit::{Commit, Write};
use crate::deletion::door::{Ask, Begins, Door, Passed, Requested, Taking, break_glass, entry};
use crate::deletion::plan::{Circumstances, Draft, Plan};
use crate::deletion::protection;
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::request::keeps_nothing;
use crate::deletion::write::{begin, enter};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ResourceId, Revision};
use crate::subject::SubjectKind;
use crate::time::Timestamp;
use crate::topology::owner::{self, Verb};

const DELETE: &str = "resource.delete";

/// Accepts the deletion of a resource that no workspace owns, see [`accept`].
pub fn request(
    snapshot: &ResourceSnapshot,
    door: &Door,
    ask: &Ask,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    owner::check(snapshot, Verb::Delete)?;
    accept(snapshot, door, ask, actor)
}

/// Accepts the deletion, or returns the one that is under way. The teardown of a
/// retry becomes a deletion of the whole resource. Whoever owns the resource has agreed.
pub(crate) fn accept(
    snapshot: &ResourceSnapshot,
    door: &Door,
    ask: &Ask,
    actor: &Actor,
) -> Result<Requested, Refusal> {
    let (now, deletion_id) = (snapshot.now, ask.deletion_id);
    ask.expected.check("resource", snapshot.resource.revision)?;
    let retrying =
        snapshot.deletion.as_ref().filter(|deletion| Scope::of(deletion) == Scope::Attempt);
    let under_way = snapshot.deletion.as_ref().filter(|_| retrying.is_none());
    if ask.keep {
        return Err(keeps_nothing(ResourceId::KIND));
    }
    door.check_plan(ask, snapshot.resource.id.into(), under_way, now)?;
    if let Some(existing) = under_way {
        // A member goes when its project goes; it does not bring all the others forward.
        if existing.target != snapshot.resource.id.into() {
            return Ok(Requested::new(existing.id, Commit::default()));
        }
        return door.again(existing, ask, actor, now);
    }
    let order = Order {
        scope: Scope::Resource,
        deletion_id,
        reason: &ask.reason,
        actor,
        verb: DELETE,
        retention: door.defaults.retention,
        purge_protected: door.defaults.purge_protected,
        resources: 1,
    };
    let name = &*snapshot.resource.handle.to_string();
    let taking = Taking { kind: SubjectKind::Resource, name, resources: 1 };
    let begins = match door.pass(ask, taking, actor, now)? {
        Passed::Begins(begins) => begins,
        Passed::Stopped(requested) => return Ok(*requested),
    };
    let mut commit = match (snapshot.attempt.request_deletion(now), begins, retrying) {
        // A retry takes the attempt down already, so there is nothing to wait for.
        (DeletionRequest::AlreadyLeaving, _, Some(retrying)) => {
            let revision = snapshot.resource.revision.next();
            let mut commit = teardown::order_only(snapshot, order, revision, None);
            superseded(&mut commit, snapshot, retrying);
            commit
        }
        (DeletionRequest::Accepted(leaving), Begins::Now, _) => {
            teardown::begin(snapshot, *leaving, order)
        }
        (DeletionRequest::Accepted(_), Begins::At(time), _) => scheduled(snapshot, order, time),
        // An attempt in teardown always has its deletion: one commit wrote both.
        (DeletionRequest::AlreadyLeaving, _, None) => Commit::default(),
    };
    if begins == Begins::Now {
        take_other(&mut commit, snapshot, format!("{DELETE} by {}", actor.name), actor);
    }
    break_glass(&mut commit, ask, actor);
    door.use_plan(&mut commit, deletion_id);
    Ok(Requested::new(deletion_id, commit))
}

/// Plans the deletion instead of requesting it.
pub fn plan(
    snapshot: &ResourceSnapshot,
    door: &Door,
    circumstances: &Circumstances,
    actor: &Actor,
) -> Result<Plan, Refusal> {
    let (resource, now) = (&snapshot.resource, snapshot.now);
    let name = resource.handle.to_string();
    if resource.deleted_at.is_some() {
        let message = format!("resource `{name}` is deleted already; there is nothing to plan");
        return Err(Refusal::new(ErrorKind::Leaving, message));
    }
    let taking = Taking { kind: SubjectKind::Resource, name: &name, resources: 1 };
    let owned = owner::check(snapshot, Verb::Delete).err();
    let refused = door.would_refuse(&circumstances.ask, taking, actor, now);
    let draft = Draft {
        target: resource.id.into(),
        name: name.clone(),
        project_id: Some(resource.project_id),
        now,
        under_way: snapshot
            .deletion
            .as_ref()
            .filter(|deletion| Scope::of(deletion) == Scope::Resource),
        refusals: owned.into_iter().chain(refused).collect(),
    };
    draft.planned(door, circumstances, actor)
}

/// The deletion of a resource ends the teardown of a retry by taking it over.
fn superseded(commit: &mut Commit, snapshot: &ResourceSnapshot, retrying: &Deletion) {
    let cancelled = Deletion { state: DeletionState::Cancelled, ..retrying.clone() };
    enter(commit, retrying, cancelled, snapshot.now);
}

fn scheduled(snapshot: &ResourceSnapshot, order: Order<'_>, time: Timestamp) -> Commit {
    let (now, resource) = (snapshot.now, &snapshot.resource);
    let about = About::new(resource.id).of(resource.project_id).at(resource.revision.next());
    let audit = AuditEntry::new(order.verb, order.actor, about, now)
        .because(order.reason.as_str())
        .with(json!({ "deletion_id": order.deletion_id, "scheduled_for": time }));
    let marked = Resource { deletion_id: Some(order.deletion_id), ..resource.clone() };
    let mut commit = Commit {
        writes: vec![Write::Broker(BrokerWrite::ResourceUpdate(marked))],
        audit: vec![audit],
        ..Commit::default()
    };
    let deletion = teardown::deletion(snapshot, order);
    let deletion =
        Deletion { state: DeletionState::Scheduled, scheduled_for: Some(time), ..deletion };
    begin(&mut commit, deletion);
    commit
}

/// Begins the teardown of a resource whose deletion is scheduled, because its time has
/// come. Protection is checked again: it may be newer than the request.
pub fn start(snapshot: &ResourceSnapshot, door: &Door, actor: &Actor) -> Result<Commit, Refusal> {
    let scheduled = snapshot
        .deletion
        .as_ref()
        .filter(|deletion| deletion.state == DeletionState::Scheduled)
        .filter(|deletion| deletion.target == snapshot.resource.id.into());
    let Some(scheduled) = scheduled else { return Ok(Commit::default()) };
    protection::check(&door.protections, snapshot.now)?;
    let DeletionRequest::Accepted(leaving) = snapshot.attempt.request_deletion(snapshot.now) else {
        return Ok(Commit::default());
    };
    let mut commit = Commit::default();
    let why = format!("the grace of its deletion by {} is over", scheduled.requested_by);
    let change = teardown::first_phase(snapshot, &leaving, why);
    let audit = entry("deletion.start", scheduled, actor, snapshot.now);
    commit.audit.push(audit.because(&*scheduled.reason).changing(change));
    teardown::take_down(&mut commit, snapshot, *leaving);
    let why = format!("the grace of its deletion by {} is over", scheduled.requested_by);
    take_other(&mut commit, snapshot, why, actor);
    let running = Deletion { state: DeletionState::Running, ..scheduled.clone() };
    enter(&mut commit, scheduled, running, snapshot.now);
    Ok(commit)
}

/// Takes a resource down as a member of the running deletion of its project.
pub fn start_member(snapshot: &ResourceSnapshot, container: &Deletion, actor: &Actor) -> Commit {
    let mut commit = Commit::default();
    let resource = &snapshot.resource;
    let own = snapshot.deletion.as_ref().filter(|deletion| deletion.id != container.id);
    match own {
        Some(retrying) if Scope::of(retrying) == Scope::Attempt => {
            superseded(&mut commit, snapshot, retrying);
        }
        // It has a deletion of its own, which begins or runs by itself.
        Some(_) => return commit,
        None => {}
    }
    if resource.deletion_id != Some(container.id) {
        let member = Resource { deletion_id: Some(container.id), ..resource.clone() };
        commit.writes.push(Write::Broker(BrokerWrite::ResourceUpdate(member)));
    }
    if let DeletionRequest::Accepted(leaving) = snapshot.attempt.request_deletion(snapshot.now) {
        let why = format!("deleted with its project by {}", container.requested_by);
        let change = teardown::first_phase(snapshot, &leaving, why);
        let revision: Revision = change.revision;
        let about = About::new(resource.id).of(resource.project_id).at(revision);
        let audit = AuditEntry::new(DELETE, actor, about, snapshot.now)
            .because(&*container.reason)
            .with(json!({ "deletion_id": container.id, "phase": snapshot.attempt.phase() }))
            .changing(change);
        commit.audit.push(audit);
        teardown::take_down(&mut commit, snapshot, *leaving);
        let why = format!("deleted with its project by {}", container.requested_by);
        take_other(&mut commit, snapshot, why, actor);
    }
    commit
}

#[cfg(test)]
mod tests;
