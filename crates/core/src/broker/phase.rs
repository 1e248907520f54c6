//! The state machine: eight phases, four actions, and [`next`], the only
//! function that advances a phase by observation. It is total, deterministic
//! and reads nothing but its arguments.
//!
//! Two groups of phases: *converge* (Pending, Provisioning, Enrolling, Ready)
//! with its sink Failed, and *teardown* (Deregistering, Deprovisioning) with
//! its sink Deleted. Nothing observed leads from one group to the other; only
//! a request for deletion does (see [`crate::broker::attempt`]).

use serde::{Deserialize, Serialize};

use crate::closed_set::closed_set;

closed_set!(
    /// The closed set of phases. There is no lossy parser on purpose: an older
    /// replica must refuse a phase it does not know rather than provision anew
    /// what a newer one is deleting.
    Phase {
        Pending => "Pending",
        Provisioning => "Provisioning",
        Enrolling => "Enrolling",
        Ready => "Ready",
        Failed => "Failed",
        Deregistering => "Deregistering",
        Deprovisioning => "Deprovisioning",
        Deleted => "Deleted",
    }
);

impl Phase {
    /// The three phases that are sticky as a group.
    pub const fn is_deletion(self) -> bool {
        matches!(self, Self::Deregistering | Self::Deprovisioning | Self::Deleted)
    }

    /// Sinks: no observation leads out of them.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Failed | Self::Deleted)
    }
}

/// What the loop does to the outside in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    Noop,
    /// Bring the substrate to what is declared.
    Apply,
    /// Drain the node and take it out of the registry.
    DeregisterNode,
    /// Delete the composite and what belongs to it.
    DeleteSubstrate,
}

/// The observed state of the substrate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Composite {
    /// Could not be read, or could not be proven to be ours. Never "gone".
    Unknown,
    /// Proven not to exist.
    Absent,
    Present {
        ready: bool,
        /// The deliberate, terminal marker; a condition that is merely false
        /// is not a failure.
        failed: bool,
        /// Its deletion has begun and cannot be taken back.
        terminating: bool,
        /// A field that we own differs from what we would render.
        drifted: bool,
    },
}

/// What our registry says about the expected node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeFact {
    /// The blueprint is standalone: no node will ever enrol.
    NotExpected,
    Absent,
    /// Token consumed and not deregistered. Heartbeats do not matter.
    Registered,
}

/// Everything that [`next`] may know about the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Observed {
    pub composite: Composite,
    pub node: NodeFact,
}

/// Decides the action of this tick and the phase after it.
///
/// *Guarantees.* Total and deterministic. Failed and Deleted are sticky, the
/// deletion phases are sticky as a group. The substrate is never deleted while
/// the node is registered. An unknown composite changes no phase, except that
/// a registered node is drained all the same.
pub const fn next(observed: Observed, phase: Phase) -> (Action, Phase) {
    match phase {
        Phase::Failed => (Action::Noop, Phase::Failed),
        Phase::Deleted => (Action::Noop, Phase::Deleted),
        Phase::Deregistering | Phase::Deprovisioning => tear_down(observed, phase),
        Phase::Pending | Phase::Provisioning | Phase::Enrolling | Phase::Ready => {
            converge(observed, phase)
        }
    }
}

const fn converge(observed: Observed, phase: Phase) -> (Action, Phase) {
    match observed.composite {
        Composite::Unknown => (Action::Noop, phase),
        Composite::Absent => (Action::Apply, Phase::Pending),
        // Before readiness: a failed composite may still claim to be ready.
        Composite::Present { failed: true, .. } => (Action::Noop, Phase::Failed),
        // A deletion cannot be stopped. The composite is released in order, the
        // node first, and created again once it is gone.
        Composite::Present { terminating: true, .. } => match observed.node {
            NodeFact::Registered => (Action::DeregisterNode, phase),
            NodeFact::Absent | NodeFact::NotExpected => (Action::DeleteSubstrate, phase),
        },
        Composite::Present { ready: false, .. } => (Action::Apply, Phase::Provisioning),
        Composite::Present { ready: true, drifted, .. } => match observed.node {
            NodeFact::Absent => (Action::Apply, Phase::Enrolling),
            NodeFact::Registered | NodeFact::NotExpected => {
                (if drifted { Action::Apply } else { Action::Noop }, Phase::Ready)
            }
        },
    }
}

const fn tear_down(observed: Observed, phase: Phase) -> (Action, Phase) {
    match (observed.node, observed.composite) {
        // The node goes first, whatever is known of the substrate.
        (NodeFact::Registered, _) => (Action::DeregisterNode, Phase::Deregistering),
        (_, Composite::Unknown) => (Action::Noop, phase),
        (_, Composite::Present { .. }) => (Action::DeleteSubstrate, Phase::Deprovisioning),
        (_, Composite::Absent) => (Action::Noop, Phase::Deleted),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn every_composite() -> Vec<Composite> {
        let flags = [false, true];
        let mut all = vec![Composite::Unknown, Composite::Absent];
        for ready in flags {
            for failed in flags {
                for terminating in flags {
                    for drifted in flags {
                        all.push(Composite::Present { ready, failed, terminating, drifted });
                    }
                }
            }
        }
        all
    }

    fn every_observation() -> Vec<Observed> {
        let nodes = [NodeFact::NotExpected, NodeFact::Absent, NodeFact::Registered];
        every_composite()
            .into_iter()
            .flat_map(|composite| nodes.map(|node| Observed { composite, node }))
            .collect()
    }

    fn observations() -> impl Strategy<Value = Observed> {
        proptest::sample::select(every_observation())
    }

    fn phases() -> impl Strategy<Value = Phase> {
        proptest::sample::select(Phase::ALL.to_vec())
    }

    const fn present(ready: bool) -> Composite {
        Composite::Present { ready, failed: false, terminating: false, drifted: false }
    }

    /// Invariant 1: 18 composites × 3 node facts × 8 phases, the whole domain.
    #[test]
    fn next_is_total_and_deterministic_over_every_pair() {
        let mut pairs = 0;
        for observed in every_observation() {
            for &phase in Phase::ALL {
                assert_eq!(next(observed, phase), next(observed, phase));
                pairs += 1;
            }
        }
        assert_eq!(pairs, 18 * 3 * 8);
    }

    #[test]
    fn the_converge_arm_walks_by_observation() {
        use Action::{Apply, Noop};
        let absent = NodeFact::Absent;
        let registered = NodeFact::Registered;
        let table = [
            (Composite::Absent, absent, Phase::Pending, (Apply, Phase::Pending)),
            (present(false), absent, Phase::Pending, (Apply, Phase::Provisioning)),
            (present(true), absent, Phase::Provisioning, (Apply, Phase::Enrolling)),
            (present(true), registered, Phase::Enrolling, (Noop, Phase::Ready)),
            (present(true), NodeFact::NotExpected, Phase::Provisioning, (Noop, Phase::Ready)),
            (present(true), registered, Phase::Ready, (Noop, Phase::Ready)),
            // Lost substrate or a node that left: the phase follows the facts.
            (Composite::Absent, registered, Phase::Ready, (Apply, Phase::Pending)),
            (present(false), registered, Phase::Ready, (Apply, Phase::Provisioning)),
            (present(true), absent, Phase::Ready, (Apply, Phase::Enrolling)),
            (Composite::Unknown, absent, Phase::Enrolling, (Noop, Phase::Enrolling)),
        ];
        for (composite, node, phase, expected) in table {
            let observed = Observed { composite, node };
            assert_eq!(next(observed, phase), expected, "{observed:?} in {phase}");
        }
    }

    #[test]
    fn drift_in_ready_is_applied_and_stays_ready() {
        let composite =
            Composite::Present { ready: true, failed: false, terminating: false, drifted: true };
        let observed = Observed { composite, node: NodeFact::Registered };
        assert_eq!(next(observed, Phase::Ready), (Action::Apply, Phase::Ready));
    }

    #[test]
    fn a_terminating_composite_is_let_go_in_order_and_holds_the_phase_until_absent() {
        let composite =
            Composite::Present { ready: true, failed: false, terminating: true, drifted: false };
        for phase in [Phase::Pending, Phase::Provisioning, Phase::Enrolling, Phase::Ready] {
            for (node, action) in [
                (NodeFact::Registered, Action::DeregisterNode),
                (NodeFact::Absent, Action::DeleteSubstrate),
                (NodeFact::NotExpected, Action::DeleteSubstrate),
            ] {
                assert_eq!(next(Observed { composite, node }, phase), (action, phase));
            }
        }
    }

    #[test]
    fn an_unknown_composite_does_not_stop_a_drain() {
        let observed = Observed { composite: Composite::Unknown, node: NodeFact::Registered };
        assert_eq!(
            next(observed, Phase::Deprovisioning),
            (Action::DeregisterNode, Phase::Deregistering)
        );
    }

    #[test]
    fn a_phase_text_that_is_not_one_of_the_eight_is_not_parsed() {
        for &phase in Phase::ALL {
            assert_eq!(Phase::parse(phase.as_str()), Some(phase));
        }
        for text in ["", "pending", "Archived", "Ready "] {
            assert_eq!(Phase::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        /// Invariant 2.
        #[test]
        fn sinks_are_sticky(observed in observations()) {
            prop_assert_eq!(next(observed, Phase::Failed), (Action::Noop, Phase::Failed));
            prop_assert_eq!(next(observed, Phase::Deleted), (Action::Noop, Phase::Deleted));
        }

        /// Invariant 2.
        #[test]
        fn deletion_phases_are_sticky_as_a_group(
            phase in phases(),
            sequence in proptest::collection::vec(observations(), 0..40),
        ) {
            let mut current = phase;
            for observed in sequence {
                let (_, after) = next(observed, current);
                prop_assert_eq!(after.is_deletion(), current.is_deletion());
                current = after;
            }
        }

        /// Invariant 1: node before substrate under any sequence.
        #[test]
        fn the_substrate_is_never_deleted_while_the_node_is_registered(
            phase in phases(),
            sequence in proptest::collection::vec(observations(), 0..40),
        ) {
            let mut current = phase;
            for observed in sequence {
                let (action, after) = next(observed, current);
                if action == Action::DeleteSubstrate {
                    prop_assert_ne!(observed.node, NodeFact::Registered);
                }
                if observed.node == NodeFact::Registered && current.is_deletion() && current != Phase::Deleted {
                    prop_assert_eq!(after, Phase::Deregistering);
                }
                current = after;
            }
        }

        /// Invariant 3: an unreadable composite moves no converging resource
        /// and deletes nothing.
        #[test]
        fn an_unknown_composite_holds_the_phase(phase in phases(), node in proptest::sample::select(vec![NodeFact::NotExpected, NodeFact::Absent])) {
            let observed = Observed { composite: Composite::Unknown, node };
            prop_assert_eq!(next(observed, phase), (Action::Noop, phase));
        }

        /// A fair world (it does what it is asked, after any amount of noise)
        /// brings every converging phase to Ready and every leaving one to
        /// Deleted within the length of the path.
        #[test]
        fn any_fair_sequence_converges(
            phase in phases(),
            standalone in any::<bool>(),
            noise in proptest::collection::vec(observations(), 0..20),
        ) {
            let mut current = phase;
            for observed in noise {
                let (_, after) = next(observed, current);
                current = after;
            }
            let goal = match current {
                Phase::Failed => Phase::Failed,
                leaving if leaving.is_deletion() => Phase::Deleted,
                _ => Phase::Ready,
            };
            let mut world = Observed {
                composite: Composite::Absent,
                node: if standalone { NodeFact::NotExpected } else { NodeFact::Absent },
            };
            if current.is_deletion() {
                world.composite = present(true);
                if !standalone {
                    world.node = NodeFact::Registered;
                }
            }
            for _ in 0..8 {
                let (action, after) = next(world, current);
                current = after;
                match action {
                    Action::Apply if world.composite == Composite::Absent => world.composite = present(false),
                    Action::Apply if world.composite == present(false) => world.composite = present(true),
                    Action::Apply if world.node == NodeFact::Absent => world.node = NodeFact::Registered,
                    Action::DeregisterNode => world.node = NodeFact::Absent,
                    Action::DeleteSubstrate => world.composite = Composite::Absent,
                    Action::Apply | Action::Noop => {}
                }
            }
            prop_assert_eq!(current, goal);
        }
    }
}
