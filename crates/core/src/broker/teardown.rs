//! The start of every teardown, whoever requested it and why: one `Deletion`
//! record, the first teardown phase, the event and the revocation of the token,
//! in one commit.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::attempt::ProvisionedResource;
use crate::broker::event;
use crate::broker::resource::Resource;
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, StateChange, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::record::{Deletion, DeletionState};
use crate::ids::{DeletionId, Revision};
use crate::nodes::NodesWrite;
use crate::nodes::token::BootstrapToken;
use crate::subject::{Subject, SubjectKind};
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
}

/// Records the order; `leaving` is the attempt after the request.
pub(crate) fn begin(
    snapshot: &ResourceSnapshot,
    leaving: ProvisionedResource,
    order: Order<'_>,
) -> Commit {
    let now = snapshot.now;
    let revision = leaving.revision().next();
    let change = StateChange {
        subject: leaving.id().into(),
        revision,
        at: now,
        from: Some(snapshot.attempt.phase().as_str()),
        to: leaving.phase().as_str(),
        why: format!("{} by {}", order.verb, order.actor.name),
    };
    let mut commit = order_only(snapshot, order, revision, Some(change));
    commit.events.push(event::announce(event::DELETING, &leaving, revision, now));
    commit.wakes.push(leaving.id().into());
    commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(leaving)));
    commit.writes.extend(revoked(snapshot));
    commit
}

/// Revokes the unused token: no node may enrol for an attempt in teardown.
pub(crate) fn revoked(snapshot: &ResourceSnapshot) -> Option<Write> {
    let unused = |token: &&BootstrapToken| token.consumed.is_none() && token.revoked_at.is_none();
    let token = snapshot.token.as_ref().filter(unused)?;
    let revoked = BootstrapToken { revoked_at: Some(snapshot.now), ..token.clone() };
    Some(Write::Nodes(NodesWrite::TokenUpdate(revoked)))
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
    let the_attempt = Subject::from(attempt.id());
    let the_resource = Subject::from(resource.id);
    let (target, members) = match order.scope {
        Scope::Resource => (the_resource, vec![the_resource, the_attempt]),
        Scope::Attempt => (the_attempt, vec![the_attempt]),
    };
    let deletion = Deletion {
        id: order.deletion_id,
        target,
        state: DeletionState::Running,
        requested_by: order.actor.name.clone(),
        reason: order.reason.as_str().to_owned(),
        members,
        revision: Revision::FIRST,
        requested_at: now,
        done_at: None,
        // Grace is 0: the teardown touches the substrate at once, and cannot be undone.
        restorable_until: None,
    };
    let subject = About::new(resource.id).of(resource.project_id).at(revision);
    let audit = AuditEntry::new(order.verb, order.actor, subject, now)
        .because(order.reason.as_str())
        .with(json!({ "deletion_id": order.deletion_id, "phase": attempt.phase() }));
    let audit = AuditEntry { change, ..audit };
    Commit {
        writes: vec![
            Write::Deletion(DeletionWrite::DeletionInsert(deletion)),
            Write::Broker(BrokerWrite::ResourceUpdate(Resource {
                deletion_id: Some(order.deletion_id),
                ..resource.clone()
            })),
        ],
        audit: vec![audit],
        ..Commit::default()
    }
}
