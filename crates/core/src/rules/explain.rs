//! What a resource waits for, in words, and until when that is normal.

use crate::blocker::Deadlines;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{mk_node, mk_snapshot};

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
}
