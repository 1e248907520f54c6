//! What must hold, and where it is looked for.

use super::state::{Due, State, Worker};

/// A promise of the protocol. One that is broken by a single transition is
/// reported by the machine, the others are asked of every state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Property {
    /// Nobody writes under a claim that was taken over. Asked at every write.
    NoWriteUnderALostClaim,
    /// A claim has one holder. With the one above: no two workers commit for
    /// one claim.
    OneHolderPerClaim,
    /// A row that is due for nobody agrees with what is wanted and with what
    /// is the case. Stronger than asking it of quiet states only: while a
    /// lease is live, or a row is to be looked at again, it has a due time.
    NoWakeIsLost,
    /// A row under a lease has a holder. A lease that nobody holds would keep
    /// the row from everybody.
    ALeaseHasAHolder,
    /// An action starts with more lease left, by the database, than it may
    /// take. Asked at every start.
    EnoughLeaseToAct,
    /// Two actions of one row are never under way at once. Asked at every start.
    NoActionsOverlap,
    /// Without further disturbance the row can always get to where it is
    /// settled. From every state there is a way; with workers that are
    /// scheduled fairly that way is taken in the end, because the space is
    /// finite. Once settled, a worker without disturbance looks, finds nothing
    /// due, and is idle again.
    Converges,
}

/// A property of single states that this one breaks.
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

/// Nothing is left to do and nobody is at it.
pub(super) fn is_settled(state: &State) -> bool {
    state.row.due == Due::WhenWoken
        && state.action.is_none()
        && agrees(state)
        && state.workers.iter().all(|worker| matches!(worker, Worker::Idle))
}

fn agrees(state: &State) -> bool {
    state.row.recorded == state.row.wanted && state.actual == state.row.wanted
}
