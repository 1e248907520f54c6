//! Abandoning: the last way out of a deletion whose substrate can never be read again,
//! because its cluster is lost for good or something broke its identity. Without it such a
//! resource can neither converge nor be deleted.
//!
//! *Expected flow.* A person requested the deletion → the substrate cannot be read, or its
//! deletion is overdue → an admin abandons it: Deleted, with a leak record for everything
//! that nobody proved gone.
//! *Guarantees.* Nothing abandoned is ever said to be proven gone: it gets no
//! `absence_proven_at`, and its event and its row say `abandoned`. What a deletion in order
//! can still take down is refused. The unused token and the node's key end in the same
//! commit.
//! *Caveats.* Nothing outside is touched, so this is a person's write to the registry and
//! is allowed in every mode. If the cluster comes back, the attempt stays Deleted: a scan
//! finds its object, and deletion verification removes it like any other.

use std::time::Duration;

use serde_json::{Value, json};

use crate::access::audit::{About, Actor, AuditEntry};
use crate::blocker::{BlockerCode, Deadlines};
use crate::broker::BrokerWrite;
use crate::broker::event;
use crate::broker::observation::CompositeReport;
use crate::broker::phase::Phase;
use crate::broker::record::{last_uid, release};
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::teardown::{self, Scope};
use crate::broker::waiting::{not_served, phase_deadline};
use crate::commit::{Commit, StateChange, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::leak::{AbandonedKind, LastKnown, LeakRecord, ObjectRef};
use crate::error::{ErrorKind, Refusal};
use crate::event::derive_id;
use crate::ids::{ClusterId, LeakRecordId};
use crate::nodes::NodesWrite;
use crate::nodes::drain::deregister;
use crate::nodes::node::{DeregisteredHow, Node};
use crate::operations::control::Mode;
use crate::text::{Reason, check_confirmation, storable};
use crate::topology::owner::{self, Verb};

/// The audit verb.
pub const ABANDON: &str = "resource.abandon";

/// What the person says.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub reason: &'a Reason,
    /// The handle of the resource, typed once more.
    pub confirm: &'a str,
}

/// What is known besides the rows.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// What this process observed right before; `None` if it does not serve the cluster.
    pub report: Option<&'a CompositeReport>,
    pub mode: &'a Mode,
    pub deadlines: &'a Deadlines,
    /// How long a row may be due before nobody serves its cluster.
    pub claimed_within: Duration,
}

/// Abandons the attempt; repeated, it changes nothing.
pub fn request(
    snapshot: &ResourceSnapshot,
    request: Request<'_>,
    circumstances: Circumstances<'_>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    owner::check(snapshot, Verb::Abandon)?;
    let handle = snapshot.resource.handle.as_str();
    let expected = format!("the handle of the resource, `{handle}`");
    check_confirmation(request.confirm, &[handle], &expected)?;
    if snapshot.attempt.abandoned_at().is_some() {
        return Ok(Commit::default());
    }
    let ground = ground(snapshot, circumstances)?;
    Ok(abandoned(snapshot, request.reason, &ground, actor))
}

/// Why it may be abandoned, in words.
fn ground(
    snapshot: &ResourceSnapshot,
    circumstances: Circumstances<'_>,
) -> Result<String, Refusal> {
    let attempt = &snapshot.attempt;
    let phase = attempt.phase();
    let refuse = |problem: &str| {
        let handle = &snapshot.resource.handle;
        let message = format!("resource `{handle}` is {phase} and is not abandoned: {problem}");
        Err(Refusal::new(ErrorKind::NotAbandonable, message))
    };
    // An attempt that a retry took down is Deleted, and its resource lives on.
    let lives = phase == Phase::Deleted && snapshot.resource.deleted_at.is_none();
    if !phase.is_deletion() || lives {
        return refuse("nobody requested its deletion; first `slipway resource delete`");
    }
    if attempt.absence_proven_at().is_some() {
        return refuse("it is gone, proven twice");
    }
    let retried = snapshot.deletion.as_ref().is_some_and(|d| Scope::of(d) == Scope::Attempt);
    // The one that a surge replaced, or that was to replace it, has no successor.
    let surge = snapshot.resource.surge.as_ref();
    let retried = retried && surge.is_none_or(|one| one.to == attempt.id() && !one.aborted);
    if phase != Phase::Deleted && retried {
        return refuse(
            "a retry takes it down, and another attempt would follow; first `slipway resource delete`",
        );
    }
    if let Some(reason) = unreadable(snapshot, circumstances) {
        return Ok(reason);
    }
    let registered = snapshot.node.as_ref().is_some_and(Node::is_registered);
    let overdue = phase_deadline(snapshot, attempt, circumstances.deadlines)
        .filter(|deadline| *deadline <= snapshot.now);
    let late = |deadline| Ok(format!("its deletion was to end by {deadline}"));
    match (circumstances.report, circumstances.mode, overdue) {
        (Some(CompositeReport::Unknown { .. } | CompositeReport::Foreign { .. }), ..) => refuse(
            "its substrate could not be read just now, but the loop has not recorded that; ask again once `slipway explain resource` shows substrate_unknown",
        ),
        (None, Mode::Acting, Some(deadline)) if !registered => late(deadline),
        (None, ..) => refuse(&not_observed(snapshot, circumstances.claimed_within)),
        _ if phase == Phase::Deleted => {
            refuse("its substrate can be read, and the loop proves its absence by itself")
        }
        (Some(CompositeReport::Absent), ..) => {
            refuse("its substrate is absent, and the loop ends the deletion by itself")
        }
        _ if registered => refuse(
            "its substrate can be read, and its node is registered; let it drain, or `slipway resource force-drain`",
        ),
        // The deadline passed because nothing was done, not because it could not be.
        (_, mode, _) if *mode != Mode::Acting => refuse(&format!(
            "its substrate can be read, and the installation is {}; end that first, then the deletion goes on",
            mode.name()
        )),
        (_, _, None) => refuse(
            "its substrate can be read, and its deletion is not overdue; wait for it, `slipway explain resource` says what for",
        ),
        (_, _, Some(deadline)) => late(deadline),
    }
}

/// Nobody observed its substrate just now, and its row is not old enough to show that
/// nobody can.
fn not_observed(snapshot: &ResourceSnapshot, within: Duration) -> String {
    let cluster = snapshot.placement.as_ref().map_or("", |placement| &placement.cluster);
    let from = snapshot.due_at.map(|due_at| {
        format!(
            "; it can be abandoned after {}, if none has worked on it by then",
            due_at.plus(within)
        )
    });
    format!(
        "this control plane does not serve its cluster {cluster}, and another one may{}",
        from.unwrap_or_default()
    )
}

/// Why its substrate cannot be read. Two observations have to agree, so that one failed
/// request is no ground: the loop's, which is a blocker of the row, and our own. Where
/// nobody serves the cluster there is neither; the row says so by its age.
fn unreadable(snapshot: &ResourceSnapshot, circumstances: Circumstances<'_>) -> Option<String> {
    let unserved = not_served(snapshot, circumstances.claimed_within);
    let unknown = |code| code == BlockerCode::SubstrateUnknown;
    let recorded = snapshot.blockers.iter().find(|blocker| unknown(blocker.code));
    let recorded = recorded.or(unserved.as_ref())?;
    match circumstances.report {
        None => Some(recorded.message.clone()),
        Some(CompositeReport::Unknown { reason } | CompositeReport::Foreign { reason }) => {
            Some(reason.clone())
        }
        Some(CompositeReport::Absent | CompositeReport::Present(_)) => None,
    }
}

fn abandoned(snapshot: &ResourceSnapshot, reason: &Reason, ground: &str, actor: &Actor) -> Commit {
    let (now, resource, before) = (snapshot.now, &snapshot.resource, &snapshot.attempt);
    let after = before.abandoned(now);
    let revision = after.revision().next();
    let mut commit = Commit::default();
    let leaks = leaks(snapshot, ground);
    let audit =
        AuditEntry::new(ABANDON, actor, About::new(resource.id).of(resource.project_id), now)
            .because(reason.as_str())
            .with(json!({
                "abandoned": true,
                "provisioned_resource_id": before.id(),
                "phase": before.phase(),
                "ground": storable(ground),
                "leak_record_ids": leaks.iter().map(|leak| leak.id).collect::<Vec<_>>(),
            }));
    let change = (before.phase() != Phase::Deleted).then(|| StateChange {
        subject: before.id().into(),
        revision,
        at: now,
        from: Some(before.phase().as_str()),
        to: after.phase().as_str(),
        why: storable(&format!("abandoned by {}: {ground}", actor.name)),
    });
    if change.is_some() {
        release(&mut commit, snapshot, actor);
        commit.events.push(event::announce(event::DELETED, &after, revision, now));
    }
    commit.audit.push(AuditEntry { change, ..audit });
    commit.writes.extend(teardown::revoked(snapshot));
    if let Some(node) = snapshot.node.as_ref().filter(|node| node.is_registered()) {
        let why = Some(reason.as_str().to_owned());
        let (node, audit) = deregister(node, DeregisteredHow::Forced, why, actor, snapshot);
        commit.writes.push(Write::Nodes(NodesWrite::NodeUpdate(node)));
        commit.audit.push(audit.because(reason.as_str()));
    }
    let leaks = leaks.into_iter().map(|leak| Write::Deletion(DeletionWrite::LeakInsert(leak)));
    commit.writes.extend(leaks);
    commit.writes.push(Write::BlockersReplace(before.id().into(), Vec::new()));
    commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(after)));
    commit.writes.push(Write::Broker(BrokerWrite::ClaimEnd(before.id())));
    commit
}

/// A record for everything that nobody proved gone: the composite, and a node that was
/// registered. What the project shares with others belongs to its placement.
fn leaks(snapshot: &ResourceSnapshot, ground: &str) -> Vec<LeakRecord> {
    let attempt = &snapshot.attempt;
    let cluster_id = ClusterId::new(attempt.partition().as_uuid());
    // The project may have moved since.
    let placement = snapshot.placement.as_ref().filter(|placed| placed.cluster_id == cluster_id);
    let record = |kind: AbandonedKind, object_ref, uid, evidence: Value| LeakRecord {
        id: LeakRecordId::new(derive_id(
            snapshot.now,
            &[kind.as_str().as_bytes(), attempt.id().as_uuid().as_bytes()],
        )),
        kind: kind.as_str(),
        subject: attempt.id().into(),
        found_at: snapshot.now,
        last_known: Some(LastKnown {
            cluster_id,
            cluster: placement.map(|placed| placed.cluster.clone()),
            object_ref,
            uid,
        }),
        evidence,
    };
    let object_ref = placement.map(|placed| ObjectRef {
        namespace: placed.namespace.clone(),
        name: attempt.xr_name().to_owned(),
    });
    let uid = last_uid(snapshot).map(str::to_owned);
    let evidence = json!({
        "ground": storable(ground),
        "handle": snapshot.resource.handle,
        "engine": snapshot.blueprint.engine,
        "name": attempt.xr_name(),
        "observed": snapshot.observed,
    });
    let mut leaks = vec![record(AbandonedKind::Composite, object_ref, uid, evidence)];
    if let Some(node) = snapshot.node.as_ref().filter(|node| node.is_registered()) {
        let evidence = json!({
            "ground": storable(ground),
            "node_id": node.id,
            "hostname": node.hostname,
            "mesh_ip": node.mesh.ip,
            "last_heartbeat_at": node.last_heartbeat_at,
        });
        leaks.push(record(AbandonedKind::Node, None, None, evidence));
    }
    leaks
}

#[cfg(test)]
mod tests;
