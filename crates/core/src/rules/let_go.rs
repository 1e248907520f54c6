//! What somebody deletes of a Failed attempt by hand.
//!
//! Failed is final, and `next` asks for nothing there. But our finalizer is on
//! its composite: whoever deletes that, or the namespace that it is in, would
//! wait for us for ever. So it is let go as in any other phase, the node first;
//! the attempt stays Failed, and nothing is made anew.

use crate::phase::{Action, Composite, NodeFact, Observed};

/// What is done outside about a Failed attempt.
pub const fn action(observed: Observed) -> Action {
    match (observed.composite, observed.node) {
        (Composite::Present { terminating: true, .. }, NodeFact::Registered) => {
            Action::DeregisterNode
        }
        (
            Composite::Present { terminating: true, .. },
            NodeFact::Absent | NodeFact::NotExpected,
        ) => Action::DeleteSubstrate,
        (Composite::Unknown | Composite::Absent | Composite::Present { .. }, _) => Action::Noop,
    }
}

/// Whether a Failed attempt has to be looked at again by itself. One whose
/// composite could not be read has: somebody had a reason to look, and that a
/// composite is still as it was when the watch broke off wakes nobody.
pub(crate) fn is_open(observed: Observed) -> bool {
    action(observed) != Action::Noop || observed.composite == Composite::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::{Phase, next};

    #[test]
    fn what_is_deleted_by_hand_is_let_go_in_order_and_nothing_else_is_touched() {
        let flags = [false, true];
        let nodes = [NodeFact::NotExpected, NodeFact::Absent, NodeFact::Registered];
        for node in nodes {
            for composite in [Composite::Unknown, Composite::Absent] {
                let observed = Observed { composite, node };
                assert_eq!(action(observed), Action::Noop);
                assert_eq!(is_open(observed), composite == Composite::Unknown);
            }
            for (ready, failed, terminating) in flags.into_iter().flat_map(|ready| {
                flags.into_iter().flat_map(move |failed| {
                    flags.into_iter().map(move |terminating| (ready, failed, terminating))
                })
            }) {
                let composite = Composite::Present { ready, failed, terminating, drifted: false };
                let observed = Observed { composite, node };
                let expected = match (terminating, node) {
                    (false, _) => Action::Noop,
                    (true, NodeFact::Registered) => Action::DeregisterNode,
                    (true, _) => Action::DeleteSubstrate,
                };
                assert_eq!((action(observed), is_open(observed)), (expected, terminating));
                assert_eq!(next(observed, Phase::Failed), (Action::Noop, Phase::Failed));
            }
        }
    }
}
