//! What a resource waits for, in words, and until when that is normal.

use std::time::Duration;

use serde_json::json;

use crate::blocker::{Blocker, BlockerCode, Deadlines};
use crate::broker::attempt::ProvisionedResource;
use crate::broker::flapping::flapping_deadline;
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::catalog::blueprint_version::Engine;
use crate::ids::Partition;
use crate::nodes::node::Node;
use crate::nodes::token::BootstrapToken;
use crate::placement::cluster::{Cluster, ClusterAccess, how_to_serve};
use crate::time::Timestamp;

/// When the wait becomes a blocker, by phase or flapping window, whichever is earlier.
pub fn shown_deadline(snapshot: &ResourceSnapshot, deadlines: &Deadlines) -> Option<Timestamp> {
    let attempt = &snapshot.attempt;
    let flapping = flapping_deadline(attempt, deadlines);
    phase_deadline(snapshot, attempt, deadlines).into_iter().chain(flapping).min()
}

/// The node of `attempt` that has not sent a heartbeat, and until when that is normal. Not
/// during a teardown: its drain has a deadline of its own.
pub(crate) fn heartbeat_deadline<'a>(
    snapshot: &'a ResourceSnapshot,
    attempt: &ProvisionedResource,
    deadlines: &Deadlines,
) -> Option<(&'a Node, Timestamp)> {
    let node = snapshot.node.as_ref().filter(|node| node.is_silent())?;
    let waits = !attempt.phase().is_deletion() && attempt.phase() != Phase::Failed;
    waits.then(|| (node, node.registered_at.plus(deadlines.first_heartbeat)))
}

/// When the phase of `attempt` is overdue.
pub(crate) fn phase_deadline(
    snapshot: &ResourceSnapshot,
    attempt: &ProvisionedResource,
    deadlines: &Deadlines,
) -> Option<Timestamp> {
    deadlines.of(attempt.phase()).map(|duration| began(snapshot, attempt).plus(duration))
}

/// The start of the wait. The deletion phases may go back and forth, so each
/// counts from the start of what it waits for: the deletion request for the
/// drain, the end of the drain (without one, the request) for the substrate.
fn began(snapshot: &ResourceSnapshot, attempt: &ProvisionedResource) -> Timestamp {
    let requested = attempt.deletion_requested_at().unwrap_or_else(|| attempt.phase_since());
    match attempt.phase() {
        Phase::Deregistering => requested,
        Phase::Deprovisioning => {
            let node = snapshot.node.as_ref().and_then(|node| node.deregistration.as_ref());
            node.map_or(requested, |gone| gone.at.max(requested))
        }
        _ => attempt.phase_since(),
    }
}

/// One sentence: what has to happen for the phase to change. `None` where
/// nothing has to.
pub fn waiting_for(snapshot: &ResourceSnapshot) -> Option<String> {
    let node = snapshot.node.as_ref().filter(|node| node.is_registered());
    let by_hand = snapshot.blueprint.engine == Engine::Manual;
    let usable = |token: &BootstrapToken| token.is_usable(snapshot.now);
    match snapshot.attempt.phase() {
        Phase::Pending => Some(match &snapshot.placement {
            None => "the project to be placed on a cluster".to_owned(),
            Some(placement) if !placement.is_ready() => format!(
                "namespace {} on cluster {} to become Ready (it is {})",
                placement.namespace, placement.cluster, placement.namespace_phase
            ),
            Some(_) => "the substrate to be created".to_owned(),
        }),
        Phase::Provisioning => Some("the substrate to report ready".to_owned()),
        Phase::Enrolling if snapshot.token.as_ref().is_some_and(|t| t.consumed.is_some()) => {
            Some("a person: the node left and its bootstrap token is consumed".to_owned())
        }
        Phase::Enrolling if by_hand && !snapshot.token.as_ref().is_some_and(usable) => Some(
            "somebody to boot its machine with what `slipway resource enrolment` shows".to_owned(),
        ),
        Phase::Enrolling => Some("the node agent to enrol with its bootstrap token".to_owned()),
        Phase::Deregistering => Some(match node {
            Some(node) if node.can_drain() => {
                format!("node `{}` ({}) to acknowledge its drain", node.hostname, node.id)
            }
            Some(node) => format!("node `{}` ({}) to be deregistered", node.hostname, node.id),
            None => "the next observation of the substrate".to_owned(),
        }),
        Phase::Deprovisioning if by_hand => {
            Some("somebody to say that its machine is gone".to_owned())
        }
        Phase::Deprovisioning => Some("the substrate to be gone, proven by its absence".to_owned()),
        Phase::Deleted if snapshot.attempt.abandoned_at().is_some() => None,
        Phase::Deleted if snapshot.attempt.absence_proven_at().is_none() => {
            Some(match snapshot.due_at {
                Some(due) => format!("the second proof of its absence, due at {due}"),
                None => "the second proof of its absence".to_owned(),
            })
        }
        // Only once it is late: every node is silent at first.
        Phase::Ready => {
            let late = snapshot.blockers.iter().any(|one| one.code == BlockerCode::NodeSilent);
            let node = node.filter(|node| late && node.is_silent());
            node.map(|node| {
                format!("the first heartbeat of node `{}` ({})", node.hostname, node.id)
            })
        }
        Phase::Failed => Some(
            "a person: it failed, and stays so until somebody retries or deletes it".to_owned(),
        ),
        Phase::Deleted => None,
    }
}

/// The blocker that no loop can record, because none works on the resource: it
/// has been due for longer than `within` and was not claimed. A claim moves the
/// due time to the end of its lease and a renewal moves it on, so an old due
/// time means that no worker has claimed the row since.
pub fn not_served(snapshot: &ResourceSnapshot, within: Duration) -> Option<Blocker> {
    let due_at = snapshot.due_at?;
    let waited = snapshot.now.since(due_at);
    if waited <= within {
        return None;
    }
    let placement = snapshot.placement.as_ref();
    let cluster =
        placement.map(|placement| (placement.cluster.as_str(), placement.access.as_ref()));
    Some(unserved(cluster, snapshot.attempt.partition(), due_at, waited, within))
}

/// The same for a whole partition: `lag` is the wait of the row that is due longest.
pub fn partition_not_served(
    cluster: &Cluster,
    now: Timestamp,
    lag: Duration,
    within: Duration,
) -> Option<Blocker> {
    let due_at = now.minus(lag);
    let named = (cluster.name.as_str(), cluster.access.as_ref());
    (lag > within).then(|| unserved(Some(named), cluster.id.into(), due_at, lag, within))
}

fn unserved(
    cluster: Option<(&str, Option<&ClusterAccess>)>,
    partition: Partition,
    due_at: Timestamp,
    waited: Duration,
    within: Duration,
) -> Blocker {
    let seconds = waited.as_secs();
    let named = cluster.map_or_else(|| partition.to_string(), |(name, _)| name.to_owned());
    let remedy = cluster.map_or_else(
        || "see `slipway cluster list`".to_owned(),
        |(_, access)| how_to_serve(access),
    );
    let message = format!(
        "no control plane serves cluster {named}: work has been due for {seconds} s and no worker has claimed it; {remedy}"
    );
    let access = cluster.and_then(|(_, access)| access.map(ToString::to_string));
    let cluster = cluster.map(|(name, _)| name);
    Blocker {
        code: BlockerCode::ClusterNotServed,
        message,
        // From then on it should have been claimed.
        since: due_at.plus(within),
        evidence: json!({
            "cluster": cluster, "access": access, "partition": partition, "due_at": due_at,
        }),
        next_retry_at: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::broker::attempt::StoredAttempt;
    use crate::fixtures::{at, mk_node, mk_snapshot, mk_stored_attempt};
    use crate::nodes::node::{DeregisteredHow, Deregistration};

    #[test]
    fn every_phase_that_waits_says_for_what() {
        let deadlines = Deadlines::default();
        for &phase in Phase::ALL {
            let snapshot = mk_snapshot(phase);
            // Deleted has no deadline: a failed second proof is a blocker at once. Failed
            // waits for a person.
            let waits = shown_deadline(&snapshot, &deadlines).is_some()
                || matches!(phase, Phase::Deleted | Phase::Failed);
            assert_eq!(waiting_for(&snapshot).is_some(), waits, "{phase}");
        }
        let mut gone = mk_snapshot(Phase::Deleted);
        gone.due_at = Some(at(1_030));
        assert!(waiting_for(&gone).unwrap().contains(&at(1_030).to_string()));
        gone.attempt = gone.attempt.with_absence_proven(Some(at(1_030)));
        assert_eq!(waiting_for(&gone), None);
    }

    /// However often the phases of a deletion change, their deadlines stay.
    #[test]
    fn the_deadlines_of_a_deletion_count_from_its_beginning() {
        let deadlines = Deadlines::default();
        let stored = |phase| StoredAttempt {
            deletion_requested_at: Some(at(1_000)),
            phase_since: at(5_000),
            ..mk_stored_attempt(phase)
        };
        let with = |phase, drained: Option<i64>| {
            let mut node = mk_node();
            node.deregistration = drained.map(|seconds| Deregistration {
                at: at(seconds),
                how: DeregisteredHow::Forced,
                by: "key:test".to_owned(),
                reason: None,
            });
            let attempt = ProvisionedResource::hydrate(stored(phase)).unwrap();
            ResourceSnapshot { attempt, node: Some(node), ..mk_snapshot(phase) }
        };
        let draining = with(Phase::Deregistering, None);
        assert_eq!(
            shown_deadline(&draining, &deadlines),
            Some(at(1_000).plus(deadlines.deregistering))
        );
        let drained = with(Phase::Deprovisioning, Some(4_000));
        assert_eq!(
            shown_deadline(&drained, &deadlines),
            Some(at(4_000).plus(deadlines.deprovisioning))
        );
        let earlier = with(Phase::Deprovisioning, Some(900));
        assert_eq!(
            shown_deadline(&earlier, &deadlines),
            Some(at(1_000).plus(deadlines.deprovisioning))
        );
    }

    #[test]
    fn a_drain_names_the_node() {
        let mut snapshot = mk_snapshot(Phase::Deregistering);
        let node = mk_node();
        snapshot.node = Some(node.clone());
        assert!(waiting_for(&snapshot).unwrap().contains(&node.id.to_string()));
    }

    #[test]
    fn what_nobody_takes_up_names_its_cluster() {
        let mut snapshot = mk_snapshot(Phase::Pending);
        let cluster = snapshot.placement.as_ref().unwrap().cluster.clone();
        let within = Duration::from_secs(60);
        snapshot.now = at(1_000);
        snapshot.due_at = Some(at(900));
        let found = not_served(&snapshot, within).unwrap();
        assert_eq!((found.code, found.since), (BlockerCode::ClusterNotServed, at(960)));
        assert!(found.message.contains(&cluster) && found.message.contains("100 s"), "{found:?}");
        snapshot.placement.as_mut().unwrap().access =
            Some(ClusterAccess::parse("kubeconfig/east").unwrap());
        let found = not_served(&snapshot, within).unwrap();
        assert!(
            found.message.contains("as the file `east` into the kubeconfig_dir"),
            "it says which file to put where: {found:?}"
        );
        snapshot.placement = None;
        assert!(
            not_served(&snapshot, within).is_some(),
            "also where the project is placed nowhere"
        );
    }

    proptest! {
        /// Excludes rows that are not due, that are claimed (due at the end of
        /// the lease), or that have waited for no longer than `within`.
        #[test]
        fn only_what_waited_too_long_is_not_served(due in 0_i64..2_000, within in 0_u64..500) {
            let mut snapshot = mk_snapshot(Phase::Ready);
            snapshot.now = at(1_000);
            snapshot.due_at = Some(at(due));
            let within_seconds = i64::try_from(within).unwrap();
            let found = not_served(&snapshot, Duration::from_secs(within));
            prop_assert_eq!(found.is_some(), 1_000 - due > within_seconds);
            snapshot.due_at = None;
            prop_assert!(not_served(&snapshot, Duration::from_secs(within)).is_none());
        }
    }
}
