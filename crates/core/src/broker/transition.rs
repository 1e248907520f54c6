//! Timing of transitions, read from a commit: which phases were left and
//! entered, how long the phase that was left had lasted, and how long after its
//! cause the transition was recorded. Uses the database's clock alone, so that
//! the clocks of the replicas do not matter.

use std::time::Duration;

use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::commit::{Commit, StateChange};
use crate::nodes::node::Node;
use crate::time::Timestamp;

/// A transition that a commit records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// `None` for a new attempt.
    pub from: Option<Phase>,
    pub to: Phase,
    /// How long the phase `from` had lasted.
    pub lasted: Option<Duration>,
    /// How long after its cause it was recorded, if the time of the cause is known.
    pub reaction: Option<Duration>,
}

/// The transitions in a commit that was decided on this snapshot. A declaration
/// has no snapshot of a resource.
pub fn transitions(commit: &Commit, snapshot: Option<&ResourceSnapshot>) -> Vec<Transition> {
    let transition = |line: &StateChange| {
        let (from, to) = (line.from.and_then(Phase::parse), Phase::parse(line.to)?);
        let of_snapshot = |read: &&ResourceSnapshot| line.subject == read.attempt.id().into();
        let read = snapshot.filter(|read| from.is_some() && of_snapshot(read));
        Some(Transition {
            from,
            to,
            lasted: read.map(|read| line.at.since(read.attempt.phase_since())),
            reaction: read.and_then(|read| cause(read, to)).map(|cause| line.at.since(cause)),
        })
    };
    commit.state_changes().filter_map(transition).collect()
}

/// When the control plane learnt the cause of this transition. `None` if the
/// cause is outside: only the substrate knows when it became ready.
fn cause(read: &ResourceSnapshot, to: Phase) -> Option<Timestamp> {
    let entered = read.attempt.phase_since();
    let node = read.node.as_ref();
    let told = match (read.attempt.phase(), to) {
        // A declaration or a retry: the cause is the start of the phase.
        (Phase::Pending, Phase::Provisioning) => entered,
        (Phase::Enrolling, Phase::Ready) => node?.registered_at,
        // Without a node there was nothing to wait for.
        (Phase::Deregistering, Phase::Deprovisioning) => node.and_then(left).unwrap_or(entered),
        _ => return None,
    };
    // What happened before the phase began cannot have ended it.
    Some(told.max(entered))
}

fn left(node: &Node) -> Option<Timestamp> {
    node.deregistration.as_ref().map(|deregistration| deregistration.at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::commit::Write;
    use crate::fixtures::{at, mk_node, mk_snapshot};

    fn transitioned(snapshot: &ResourceSnapshot, to: Phase, seconds: i64) -> Transition {
        let commit = Commit {
            writes: vec![Write::HistoryAppend(StateChange {
                subject: snapshot.attempt.id().into(),
                revision: snapshot.attempt.revision().next(),
                at: at(seconds),
                from: Some(snapshot.attempt.phase().as_str()),
                to: to.as_str(),
                why: String::new(),
            })],
            ..Commit::default()
        };
        transitions(&commit, Some(snapshot))[0]
    }

    #[test]
    fn a_node_that_enrolled_is_the_cause_of_ready() {
        let mut snapshot = mk_snapshot(Phase::Enrolling);
        let entered = snapshot.attempt.phase_since();
        let registered = entered.plus(Duration::from_secs(7));
        snapshot.node = Some(Node { registered_at: registered, ..mk_node() });
        let seconds = registered.as_micros() / 1_000_000 + 2;
        let found = transitioned(&snapshot, Phase::Ready, seconds);
        assert_eq!(found.reaction, Some(at(seconds).since(registered)));
        assert_eq!(found.lasted, Some(at(seconds).since(entered)));
    }

    #[test]
    fn what_has_its_cause_outside_has_no_reaction() {
        for (from, to) in [
            (Phase::Provisioning, Phase::Enrolling),
            (Phase::Provisioning, Phase::Failed),
            (Phase::Deprovisioning, Phase::Deleted),
        ] {
            assert_eq!(
                transitioned(&mk_snapshot(from), to, 5_000).reaction,
                None,
                "{from} to {to}"
            );
        }
    }

    #[test]
    fn an_attempt_that_begins_has_neither() {
        let snapshot = mk_snapshot(Phase::Deleted);
        let commit = Commit {
            writes: vec![Write::HistoryAppend(StateChange {
                subject: snapshot.attempt.id().into(),
                revision: snapshot.attempt.revision().next(),
                at: at(5_000),
                from: None,
                to: Phase::Pending.as_str(),
                why: String::new(),
            })],
            ..Commit::default()
        };
        for read in [None, Some(&snapshot)] {
            let begun = transitions(&commit, read)[0];
            assert_eq!((begun.from, begun.lasted, begun.reaction), (None, None, None));
        }
    }

    proptest! {
        /// A reaction is no longer than the phase that it ended, whatever the clocks did.
        #[test]
        fn a_reaction_is_never_longer_than_its_phase(
            from in proptest::sample::select(Phase::ALL.to_vec()),
            to in proptest::sample::select(Phase::ALL.to_vec()),
            registered in 0_i64..10_000,
            written in 0_i64..10_000,
        ) {
            let mut snapshot = mk_snapshot(from);
            snapshot.node = Some(Node { registered_at: at(registered), ..mk_node() });
            let found = transitioned(&snapshot, to, written);
            let lasted = found.lasted.unwrap();
            prop_assert!(found.reaction.is_none_or(|reaction| reaction <= lasted));
        }
    }
}
