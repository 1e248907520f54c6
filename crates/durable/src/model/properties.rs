//! The properties of the protocol, and where they are checked.

use super::state::{Due, State, Worker};

/// A property of the protocol. The machine reports one that a single transition
/// breaks; the others are checked in every state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Property {
    /// Nobody writes under a claim that was taken over. Checked at every write.
    NoWriteUnderALostClaim,
    /// A claim has one holder. With the property above: no two workers commit
    /// for one claim.
    OneHolderPerClaim,
    /// A row without a due time agrees with what is wanted and with what is
    /// actual. This is stronger than checking quiet states only: while a lease
    /// is live, or a row is to be observed again, it has a due time.
    NoWakeIsLost,
    /// A row under a lease has a holder. A lease without a holder would keep
    /// everybody from the row.
    ALeaseHasAHolder,
    /// An action starts with more lease left, by the database's clock, than it
    /// may take. Checked at every start.
    EnoughLeaseToAct,
    /// Two actions of one row are never under way at once. Checked at every start.
    NoActionsOverlap,
    /// Without further disturbance the row can always become settled. From
    /// every state there is a path; with workers that are scheduled fairly it
    /// is taken in the end, because the space is finite. Once settled, an
    /// undisturbed worker tries to claim, finds nothing due, and is idle again.
    Converges,
}

/// The property of single states that this state breaks.
pub(super) fn broken_in(state: &State) -> Option<Property> {
    let [a, b] = state.workers.map(|worker| worker.claim());
    if a.is_some() && a == b {
        return Some(Property::OneHolderPerClaim);
    }
    if state.row.lease.is_some() && state.row.claimed_by.is_none() {
        return Some(Property::ALeaseHasAHolder);
    }
    if state.row.due == Due::WhenWoken && !agrees(state) {
        return Some(Property::NoWakeIsLost);
    }
    None
}

/// Nothing is left to do and nobody is working.
pub(super) fn is_settled(state: &State) -> bool {
    state.row.due == Due::WhenWoken
        && state.action.is_none()
        && agrees(state)
        && state.workers.iter().all(|worker| matches!(worker, Worker::Idle))
}

fn agrees(state: &State) -> bool {
    state.row.recorded == state.row.wanted && state.actual == state.row.wanted
}
