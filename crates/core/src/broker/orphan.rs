//! Orphaning on purpose: the way out of a teardown that a managed resource holds, which
//! strips no finalizer. The managed resource is told to keep what it stands for in the
//! cloud, so that it can go, and the composite with it.
//!
//! *Expected flow.* The teardown is overdue → an admin orphans what holds it: one commit
//! writes a leak record for each external object and, on the attempt, which objects to
//! tell → the resource loop tells them before it goes on with the deletion → the composite
//! is proven absent as always.
//! *Guarantees.* The records are durable before any object is touched. Whoever dies in
//! between, the next tick tells the same objects again, by their uid. An external object is
//! never said to be gone: its leak stays open until a person resolves it.
//! *Caveats.* The composite may take its time afterwards; it waits for the provider.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::audit::{About, Actor, AuditEntry};
use crate::blocker::Deadlines;
use crate::broker::BrokerWrite;
use crate::broker::holding::{HOLDERS_MAX, Holder, Keepable, OutsideObject, find_command};
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::waiting::phase_deadline;
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::leak::{AbandonedKind, LastKnown, LeakRecord, ObjectRef};
use crate::error::{ErrorKind, Refusal};
use crate::event::derive_id;
use crate::ids::{ClusterId, LeakRecordId};
use crate::nodes::node::Node;
use crate::operations::control::Mode;
use crate::text::{Reason, storable, storable_value};
use crate::topology::owner::{self, Verb};

/// The audit verb.
pub const ORPHAN: &str = "resource.orphan";

/// A managed resource that is told to keep its external object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepOrder {
    pub object: OutsideObject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_name: Option<String>,
    pub leak_record_id: LeakRecordId,
}

/// What is known besides the rows.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// What this process observed right before; `None` if it does not serve the cluster.
    pub holders: Option<&'a [Holder]>,
    pub mode: &'a Mode,
    pub deadlines: &'a Deadlines,
}

/// What a request leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Orphaned {
    /// Everything that is kept, also by earlier requests.
    pub kept: Vec<KeepOrder>,
    pub commit: Commit,
}

/// Orphans what holds the teardown. Repeated, it adds what holds it now.
pub fn request(
    snapshot: &ResourceSnapshot,
    reason: &Reason,
    circumstances: Circumstances<'_>,
    actor: &Actor,
) -> Result<Orphaned, Refusal> {
    owner::check(snapshot, Verb::Orphan)?;
    let holders = holders(snapshot, circumstances)?;
    let known =
        |holder: &&&Holder| !snapshot.kept.iter().any(|kept| kept.object.uid == holder.object.uid);
    let fresh: Vec<&Holder> = holders.iter().filter(known).copied().collect();
    let mut kept = snapshot.kept.clone();
    if fresh.is_empty() {
        return Ok(Orphaned { kept, commit: Commit::default() });
    }
    let mut commit = Commit::default();
    let mut added = Vec::new();
    for holder in fresh {
        let leak = leak(snapshot, holder, reason, actor);
        added.push(KeepOrder {
            object: holder.object.clone(),
            external_name: holder.external_name.as_deref().map(storable),
            leak_record_id: leak.id,
        });
        commit.writes.push(Write::Deletion(DeletionWrite::LeakInsert(leak)));
    }
    let about = About::new(snapshot.resource.id).of(snapshot.resource.project_id);
    let objects: Vec<_> = added.iter().map(KeepOrder::document).collect();
    commit.audit.push(
        AuditEntry::new(ORPHAN, actor, about, snapshot.now).because(reason.as_str()).with(json!({
            "provisioned_resource_id": snapshot.attempt.id(),
            "objects": objects,
        })),
    );
    kept.append(&mut added);
    let attempt = snapshot.attempt.id();
    commit.writes.push(Write::Broker(BrokerWrite::KeptReplace(attempt, kept.clone())));
    commit.wakes.push(attempt.into());
    Ok(Orphaned { kept, commit })
}

impl KeepOrder {
    /// A command that finds it in its cloud.
    pub fn find(&self) -> Option<String> {
        find_command(&self.object, self.external_name.as_deref()?)
    }

    /// For the audit.
    fn document(&self) -> Value {
        json!({
            "object": self.object.shown(),
            "external_name": self.external_name,
            "leak_record_id": self.leak_record_id,
        })
    }
}

/// The managed resources that hold the teardown, or why nothing is orphaned.
fn holders<'a>(
    snapshot: &ResourceSnapshot,
    circumstances: Circumstances<'a>,
) -> Result<Vec<&'a Holder>, Refusal> {
    let attempt = &snapshot.attempt;
    let phase = attempt.phase();
    let refuse = |problem: &str| {
        let handle = &snapshot.resource.handle;
        let message = format!("nothing of resource `{handle}` is orphaned: {problem}");
        Err(Refusal::new(ErrorKind::NotOrphanable, message))
    };
    if !phase.is_deletion() {
        return refuse("nobody requested its deletion; first `slipway resource delete`");
    }
    if phase == Phase::Deleted {
        return refuse("its substrate is gone");
    }
    if snapshot.node.as_ref().is_some_and(Node::is_registered) {
        return refuse(
            "its node is registered; let it drain, or `slipway resource force-drain` it",
        );
    }
    // The deadline passed because nothing was done, not because it could not be.
    if *circumstances.mode != Mode::Acting {
        let mode = circumstances.mode.name();
        return refuse(&format!(
            "the installation is {mode}; end that first, then the deletion goes on"
        ));
    }
    match phase_deadline(snapshot, attempt, circumstances.deadlines) {
        Some(deadline) if deadline <= snapshot.now => {}
        Some(deadline) => {
            return refuse(&format!(
                "its deletion is not overdue; wait, and ask again after {deadline} if it still holds"
            ));
        }
        None => return refuse("its deletion has no deadline"),
    }
    let Some(holders) = circumstances.holders else {
        let cluster = snapshot.placement.as_ref().map_or("", |placement| &placement.cluster);
        return refuse(&format!(
            "this control plane does not serve its cluster {cluster}; ask one that does"
        ));
    };
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for holder in holders.iter().filter(|holder| holder.is_held()).take(HOLDERS_MAX) {
        match &holder.keepable {
            Keepable::Yes => ours.push(holder),
            // Slipway told it so, or it needs no telling.
            Keepable::Already => {}
            Keepable::No(why) => others.push(format!("{}: {why}", holder.object.shown())),
        }
    }
    let told = |holder: &&Holder| snapshot.kept.iter().any(|k| k.object.uid == holder.object.uid);
    if ours.is_empty() && !holders.iter().any(|holder| told(&holder)) {
        return match others.is_empty() {
            true => {
                refuse("no managed resource holds it; `slipway explain resource` says what does")
            }
            false => refuse(&others.join("; ")),
        };
    }
    Ok(ours)
}

fn leak(
    snapshot: &ResourceSnapshot,
    holder: &Holder,
    reason: &Reason,
    actor: &Actor,
) -> LeakRecord {
    let kind = AbandonedKind::External;
    let attempt = &snapshot.attempt;
    let object = &holder.object;
    let cluster_id = ClusterId::new(attempt.partition().as_uuid());
    let placement = snapshot.placement.as_ref().filter(|placed| placed.cluster_id == cluster_id);
    let name = holder.external_name.as_deref();
    let evidence = json!({
        "handle": snapshot.resource.handle,
        "kept_on_purpose_by": actor.name,
        "reason": reason.as_str(),
        "external_name": name,
        "kind": object.kind,
        "api_version": object.api_version,
        "find": name.and_then(|name| find_command(object, name)),
        "provider_config": holder.provider_config,
        "provider_error": holder.error.as_ref().map(|error| &error.message),
    });
    LeakRecord {
        id: LeakRecordId::new(derive_id(
            snapshot.now,
            &[kind.as_str().as_bytes(), object.uid.as_bytes()],
        )),
        kind: kind.as_str(),
        subject: attempt.id().into(),
        found_at: snapshot.now,
        last_known: Some(LastKnown {
            cluster_id,
            cluster: placement.map(|placed| placed.cluster.clone()),
            object_ref: Some(ObjectRef {
                namespace: storable(object.namespace.as_deref().unwrap_or_default()),
                name: storable(&object.name),
            }),
            uid: Some(storable(&object.uid)),
        }),
        evidence: storable_value(&evidence),
    }
}

#[cfg(test)]
mod tests;
