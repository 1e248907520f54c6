//! Draining: how a registered node leaves. There are four ways, all of them
//! writes to the registry: the node acknowledges this drain request, it has no
//! capability to drain, its substrate is proven absent, or a person uses force.
//! A node may also leave by itself.

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{DrainId, NodeId, Revision};
use crate::nodes::NodesWrite;
use crate::nodes::node::{DeregisteredHow, Deregistration, Drain, Node};
use crate::text::Reason;
use crate::topology::owner::{self, Verb};

/// What the loop writes about the node in a tick that decided DeregisterNode:
/// nothing while it waits for an acknowledgement.
pub(crate) fn request_or_deregister(
    snapshot: &ResourceSnapshot,
    substrate_absent: bool,
    drain_id: DrainId,
    actor: &Actor,
) -> Option<(Node, AuditEntry)> {
    let node = snapshot.node.as_ref().filter(|node| node.is_registered())?;
    if substrate_absent {
        return Some(deregister(node, DeregisteredHow::SubstrateAbsent, None, actor, snapshot));
    }
    if !node.can_drain() {
        return Some(deregister(node, DeregisteredHow::Immediate, None, actor, snapshot));
    }
    if node.drain.is_some() {
        return None;
    }
    let draining =
        Node { drain: Some(Drain { id: drain_id, requested_at: snapshot.now }), ..node.clone() };
    let audit = AuditEntry::new("node.drain", actor, subject(node), snapshot.now)
        .with(json!({ "drain_id": drain_id }));
    Some((draining, audit))
}

/// Whether a tick that decided DeregisterNode would write anything: request the
/// drain, or deregister the node.
pub fn is_due(snapshot: &ResourceSnapshot, substrate_absent: bool) -> bool {
    let node = snapshot.node.as_ref().filter(|node| node.is_registered());
    node.is_some_and(|node| substrate_absent || !node.can_drain() || node.drain.is_none())
}

/// The node acknowledges that it finished this drain.
pub fn acknowledge(
    snapshot: &ResourceSnapshot,
    node_id: NodeId,
    drain_id: DrainId,
) -> Result<Commit, Refusal> {
    let node = registered(snapshot, node_id)?;
    if node.drain.map(|drain| drain.id) != Some(drain_id) {
        return Err(Refusal::new(
            ErrorKind::DrainNotRequested,
            format!("drain {drain_id} was not requested of node {node_id}; acknowledge the one in the heartbeat's answer"),
        )
        .at("drain_id"));
    }
    let actor = Actor::new(format!("node:{node_id}"));
    Ok(leaving(snapshot, deregister(node, DeregisteredHow::Acknowledged, None, &actor, snapshot)))
}

/// A node leaves by itself; repeated, it changes nothing.
pub fn leave(snapshot: &ResourceSnapshot, node_id: NodeId) -> Commit {
    let Ok(node) = registered(snapshot, node_id) else { return Commit::default() };
    let actor = Actor::new(format!("node:{node_id}"));
    leaving(snapshot, deregister(node, DeregisteredHow::Left, None, &actor, snapshot))
}

/// A person decides not to wait for the node. Its key is revoked; its current
/// work may be lost, which is why a reason is required.
pub fn force(
    snapshot: &ResourceSnapshot,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    owner::check(snapshot, Verb::ForceDrain)?;
    let node = snapshot.node.as_ref().filter(|node| node.is_registered());
    // A drain is requested in Deregistering, and of a node whose substrate
    // somebody else is deleting.
    let waits =
        |node: &&Node| snapshot.attempt.phase() == Phase::Deregistering || node.drain.is_some();
    let Some(node) = node.filter(waits) else {
        return Err(Refusal::new(
            ErrorKind::NothingToForce,
            format!(
                "resource `{}` is {} and has no node that is being drained; force-drain is for a resource that waits for a drain",
                snapshot.resource.handle,
                snapshot.attempt.phase()
            ),
        ));
    };
    let (node, audit) = deregister(
        node,
        DeregisteredHow::Forced,
        Some(reason.as_str().to_owned()),
        actor,
        snapshot,
    );
    Ok(leaving(snapshot, (node, audit.because(reason.as_str()))))
}

fn registered(snapshot: &ResourceSnapshot, node_id: NodeId) -> Result<&Node, Refusal> {
    snapshot.node.as_ref().filter(|node| node.id == node_id && node.is_registered()).ok_or_else(
        || {
            Refusal::new(
                ErrorKind::NodeNotFound,
                format!("node {node_id} is not registered (any more); nothing was changed"),
            )
        },
    )
}

pub(crate) fn deregister(
    node: &Node,
    how: DeregisteredHow,
    reason: Option<String>,
    actor: &Actor,
    snapshot: &ResourceSnapshot,
) -> (Node, AuditEntry) {
    let gone =
        node.deregistered(Deregistration { at: snapshot.now, how, by: actor.name.clone(), reason });
    let audit = AuditEntry::new("node.deregister", actor, subject(node), snapshot.now)
        .with(json!({ "how": how, "resource_id": node.resource_id }));
    (gone, audit)
}

fn subject(node: &Node) -> About {
    let revision: Revision = node.revision.next();
    About::new(node.id).of(node.project_id).at(revision)
}

fn leaving(snapshot: &ResourceSnapshot, (node, audit): (Node, AuditEntry)) -> Commit {
    Commit {
        writes: vec![Write::Nodes(NodesWrite::NodeUpdate(node))],
        audit: vec![audit],
        wakes: vec![snapshot.attempt.id().into()],
        ..Commit::default()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::{mk_actor, mk_node, mk_snapshot};

    const DRAIN: DrainId = DrainId::new(Uuid::from_u128(600));

    fn draining(capable: bool) -> ResourceSnapshot {
        let mut snapshot = mk_snapshot(Phase::Deregistering);
        let mut node = mk_node();
        if !capable {
            node.capabilities.clear();
        }
        snapshot.node = Some(node);
        snapshot
    }

    #[test]
    fn what_is_due_is_what_would_be_written() {
        for (capable, asked, registered, absent) in
            (0..16_u8).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0))
        {
            let mut snapshot = draining(capable);
            if asked && let Some(node) = &mut snapshot.node {
                node.drain = Some(Drain { id: DRAIN, requested_at: snapshot.now });
            }
            if !registered && let Some(node) = snapshot.node.take() {
                let left = deregister(&node, DeregisteredHow::Left, None, &mk_actor(), &snapshot);
                snapshot.node = Some(left.0);
            }
            let written = request_or_deregister(&snapshot, absent, DRAIN, &mk_actor()).is_some();
            assert_eq!(
                is_due(&snapshot, absent),
                written,
                "{capable} {asked} {registered} {absent}"
            );
        }
    }

    #[test]
    fn a_capable_node_is_asked_once_and_then_waited_for() {
        let mut snapshot = draining(true);
        let (asked, _) = request_or_deregister(&snapshot, false, DRAIN, &mk_actor()).unwrap();
        assert_eq!(asked.drain.unwrap().id, DRAIN);
        assert!(asked.is_registered());
        snapshot.node = Some(asked);
        assert!(
            request_or_deregister(
                &snapshot,
                false,
                DrainId::new(Uuid::from_u128(601)),
                &mk_actor()
            )
            .is_none()
        );
    }

    #[test]
    fn a_node_that_cannot_drain_goes_at_once() {
        let (gone, _) = request_or_deregister(&draining(false), false, DRAIN, &mk_actor()).unwrap();
        assert_eq!(gone.deregistration.unwrap().how, DeregisteredHow::Immediate);
    }

    #[test]
    fn proof_that_the_substrate_is_absent_ends_the_wait() {
        let (gone, _) = request_or_deregister(&draining(true), true, DRAIN, &mk_actor()).unwrap();
        assert_eq!(gone.deregistration.as_ref().unwrap().how, DeregisteredHow::SubstrateAbsent);
        assert_eq!(gone.key_hash, None, "its key is revoked");
    }

    #[test]
    fn only_the_requested_drain_can_be_acknowledged() {
        let mut snapshot = draining(true);
        let node = snapshot.node.clone().unwrap();
        let kind = |result: Result<Commit, Refusal>| result.unwrap_err().kind;
        assert_eq!(kind(acknowledge(&snapshot, node.id, DRAIN)), ErrorKind::DrainNotRequested);
        snapshot.node =
            Some(request_or_deregister(&snapshot, false, DRAIN, &mk_actor()).unwrap().0);
        let other = DrainId::new(Uuid::from_u128(1));
        assert_eq!(kind(acknowledge(&snapshot, node.id, other)), ErrorKind::DrainNotRequested);
        let commit = acknowledge(&snapshot, node.id, DRAIN).unwrap();
        assert!(
            matches!(&commit.writes[..], [Write::Nodes(NodesWrite::NodeUpdate(node))] if !node.is_registered())
        );
        assert_eq!(commit.wakes, [snapshot.attempt.id().into()]);
    }

    /// Invariant 16: force is a write to the registry, with name and reason.
    #[test]
    fn force_is_a_registry_write_and_only_while_a_drain_is_waited_for() {
        let reason = Reason::parse("agent is frozen").unwrap();
        let commit = force(&draining(true), &reason, &mk_actor()).unwrap();
        let [Write::Nodes(NodesWrite::NodeUpdate(node))] = &commit.writes[..] else {
            panic!("{commit:?}")
        };
        let deregistration = node.deregistration.as_ref().unwrap();
        assert_eq!(deregistration.how, DeregisteredHow::Forced);
        assert_eq!(deregistration.reason.as_deref(), Some("agent is frozen"));
        assert_eq!(commit.audit[0].reason.as_deref(), Some("agent is frozen"));

        for &phase in Phase::ALL.iter().filter(|phase| **phase != Phase::Deregistering) {
            let mut snapshot = mk_snapshot(phase);
            snapshot.node = Some(mk_node());
            assert_eq!(
                force(&snapshot, &reason, &mk_actor()).unwrap_err().kind,
                ErrorKind::NothingToForce,
                "{phase}"
            );
            // Somebody else deletes the substrate: the drain is waited for in any phase.
            let node = snapshot.node.as_mut().unwrap();
            node.drain = Some(Drain { id: DRAIN, requested_at: snapshot.now });
            let commit = force(&snapshot, &reason, &mk_actor()).unwrap();
            assert!(
                matches!(&commit.writes[..], [Write::Nodes(NodesWrite::NodeUpdate(node))] if !node.is_registered()),
                "{phase}"
            );
        }
    }
}
