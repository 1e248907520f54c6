//! What a resource waits for, in words, and until when that is normal.

use std::time::Duration;

use serde_json::json;

use crate::blocker::{Blocker, BlockerCode, Deadlines};
use crate::phase::Phase;
use crate::provisioned_resource::ProvisionedResource;
use crate::snapshot::ResourceSnapshot;
use crate::time::Timestamp;

/// When the current phase becomes a blocker.
pub fn deadline_of(attempt: &ProvisionedResource, deadlines: &Deadlines) -> Option<Timestamp> {
    deadlines.of(attempt.phase()).map(|duration| attempt.phase_since().plus(duration))
}

/// One sentence: what has to happen for the phase to change. `None` where
/// nothing has to.
pub fn waiting_for(snapshot: &ResourceSnapshot) -> Option<String> {
    let node = snapshot.node.as_ref().filter(|node| node.is_registered());
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
            Some("a person: the node left and its bootstrap token is used up".to_owned())
        }
        Phase::Enrolling => Some("the node agent to enrol with its bootstrap token".to_owned()),
        Phase::Deregistering => Some(match node {
            Some(node) if node.can_drain() => {
                format!("node {} (`{}`) to acknowledge its drain", node.id, node.hostname)
            }
            Some(node) => format!("node {} (`{}`) to be deregistered", node.id, node.hostname),
            None => "the next look at the substrate".to_owned(),
        }),
        Phase::Deprovisioning => Some("the substrate to be gone, proven by its absence".to_owned()),
        Phase::Ready | Phase::Failed | Phase::Deleted => None,
    }
}

/// What nobody can have recorded, because nobody works on it: the resource has
/// been due for longer than `within` and was not claimed. A claim moves the due
/// time to the end of its lease, and a renewal moves it on, so a due time that
/// far back is one that no worker has seen since.
pub fn not_served(snapshot: &ResourceSnapshot, within: Duration) -> Option<Blocker> {
    let due_at = snapshot.due_at?;
    let waited = snapshot.now.since(due_at);
    if waited <= within {
        return None;
    }
    let cluster = snapshot.placement.as_ref().map(|placement| placement.cluster.as_str());
    let seconds = waited.as_secs();
    let message = match (snapshot.attempt.lane(), cluster) {
        (None, _) => format!(
            "it belongs to no cluster that a control plane could serve, and has been due for {seconds} s"
        ),
        (Some(_), Some(cluster)) => format!(
            "no control plane serves cluster {cluster}: it has been due for {seconds} s and nobody has taken it up"
        ),
        (Some(lane), None) => format!(
            "no control plane serves cluster {lane}: it has been due for {seconds} s and nobody has taken it up"
        ),
    };
    Some(Blocker {
        code: BlockerCode::ClusterNotServed,
        message,
        // From then on somebody should have been there.
        since: due_at.plus(within),
        evidence: json!({
            "cluster": cluster,
            "lane": snapshot.attempt.lane(),
            "due_at": due_at,
        }),
        next_retry_at: None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::{at, mk_node, mk_snapshot};

    #[test]
    fn every_phase_that_waits_says_for_what() {
        let deadlines = Deadlines::default();
        for phase in Phase::ALL {
            let snapshot = mk_snapshot(phase);
            let waits = deadline_of(&snapshot.attempt, &deadlines).is_some();
            assert_eq!(waiting_for(&snapshot).is_some(), waits, "{phase}");
        }
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
        snapshot.placement = None;
        assert!(
            not_served(&snapshot, within).is_some(),
            "also where the project is placed nowhere"
        );
    }

    proptest! {
        /// Neither what is not due, nor what is claimed (its due time is the end
        /// of the lease), nor what has waited for less than a lease and a sweep.
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
