//! The start of every teardown, whoever requested it and why: one `Deletion`
//! record, the first teardown phase, the event and the revocation of the token,
//! in one commit.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::attempt::ProvisionedResource;
use crate::broker::event;
use crate::broker::resource::Resource;
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::surge::Surge;
use crate::commit::{Commit, StateChange, Write};
use crate::deletion::record::{Deletion, DeletionState, StackFacts};
use crate::deletion::write;
use crate::ids::{DeletionId, Revision};
use crate::nodes::NodesWrite;
use crate::nodes::token::BootstrapToken;
use crate::subject::SubjectKind;
use crate::text::Reason;

/// How much is taken down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The slot and the attempt that fills it.
    Resource,
    /// The attempt; another one follows it in the slot.
    Attempt,
}

impl Scope {
    /// The scope of a running deletion.
    pub(crate) fn of(deletion: &Deletion) -> Self {
        if deletion.target.kind == SubjectKind::ProvisionedResource {
            Self::Attempt
        } else {
            Self::Resource
        }
    }
}

/// A teardown order: what, why, for whom, and under which id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) scope: Scope,
    pub(crate) deletion_id: DeletionId,
    pub(crate) reason: &'a Reason,
    pub(crate) actor: &'a Actor,
    /// The audit verb.
    pub(crate) verb: &'static str,
    /// How long what it takes down is kept on record.
    pub(crate) retention: Duration,
    /// Whether nobody may purge that before its retention ends.
    pub(crate) purge_protected: bool,
    /// How many resources it counts as, for the brake.
    pub(crate) resources: i64,
}

/// Records the order; `leaving` is the attempt after the request.
pub(crate) fn begin(
    snapshot: &ResourceSnapshot,
    leaving: ProvisionedResource,
    order: Order<'_>,
) -> Commit {
    let change = first_phase(snapshot, &leaving, format!("{} by {}", order.verb, order.actor.name));
    let mut commit = order_only(snapshot, order, change.revision, Some(change));
    take_down(&mut commit, snapshot, leaving);
    commit
}

/// The change of the attempt's state; `why` says what asked for it.
pub(crate) fn first_phase(
    snapshot: &ResourceSnapshot,
    leaving: &ProvisionedResource,
    why: String,
) -> StateChange {
    StateChange {
        subject: leaving.id().into(),
        revision: leaving.revision().next(),
        at: snapshot.now,
        from: Some(snapshot.attempt.phase().as_str()),
        to: leaving.phase().as_str(),
        why,
    }
}

/// The first teardown phase, its event, and the revocation of the token.
pub(crate) fn take_down(
    commit: &mut Commit,
    snapshot: &ResourceSnapshot,
    leaving: ProvisionedResource,
) {
    let revision = leaving.revision().next();
    commit.events.push(event::announce(event::DELETING, &leaving, revision, snapshot.now));
    commit.wakes.push(leaving.id().into());
    commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(leaving)));
    commit.writes.extend(revoked(snapshot));
}

/// Revokes the unused token: no node may enrol for an attempt in teardown.
pub(crate) fn revoked(snapshot: &ResourceSnapshot) -> Option<Write> {
    let unused = |token: &&BootstrapToken| token.consumed.is_none() && token.revoked_at.is_none();
    let token = snapshot.token.as_ref().filter(unused)?;
    let revoked = BootstrapToken { revoked_at: Some(snapshot.now), ..token.clone() };
    Some(Write::Nodes(NodesWrite::TokenUpdate(revoked)))
}

/// The record of the order, running.
pub(crate) fn deletion(snapshot: &ResourceSnapshot, order: Order<'_>) -> Deletion {
    let resource = &snapshot.resource;
    Deletion {
        id: order.deletion_id,
        target: match order.scope {
            Scope::Resource => resource.id.into(),
            Scope::Attempt => snapshot.attempt.id().into(),
        },
        name: resource.handle.to_string(),
        project_id: Some(resource.project_id),
        state: DeletionState::Running,
        requested_by: order.actor.name.clone(),
        reason: order.reason.as_str().to_owned(),
        parent: None,
        cascade: false,
        resources: order.resources,
        fleet: StackFacts::default(),
        revision: Revision::FIRST,
        requested_at: snapshot.now,
        scheduled_for: None,
        done_at: None,
        retention: order.retention,
        restorable_until: None,
        purge_protected: order.purge_protected,
        ended_at: None,
    }
}

/// Only the deletion record and its audit entry, which announces the change of the
/// attempt's state; none for an attempt in teardown already.
pub(crate) fn order_only(
    snapshot: &ResourceSnapshot,
    order: Order<'_>,
    revision: Revision,
    change: Option<StateChange>,
) -> Commit {
    let (now, resource, attempt) = (snapshot.now, &snapshot.resource, &snapshot.attempt);
    let deletion = deletion(snapshot, order);
    let subject = About::new(resource.id).of(resource.project_id).at(revision);
    let audit = AuditEntry::new(order.verb, order.actor, subject, now)
        .because(order.reason.as_str())
        .with(json!({ "deletion_id": order.deletion_id, "phase": attempt.phase() }));
    let audit = AuditEntry { change, ..audit };
    let deletion_id = Some(order.deletion_id);
    let marked = match (order.scope, &resource.surge) {
        // One of two attempts goes; nobody has asked for the end of the resource.
        (Scope::Attempt, Some(surge)) => {
            let surge = Surge { deletion_id, ..surge.clone() };
            Resource { surge: Some(surge), ..resource.clone() }
        }
        _ => Resource { deletion_id, ..resource.clone() },
    };
    let mut commit = Commit {
        writes: vec![Write::Broker(BrokerWrite::ResourceUpdate(marked))],
        audit: vec![audit],
        ..Commit::default()
    };
    write::begin(&mut commit, deletion);
    commit
}
