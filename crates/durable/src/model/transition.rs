//! What can happen next. The table in the module docs of `model` describes each.

use super::state::Name;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    Tick,
    Request,
    Fact,
    /// The action under way ends, and had its effect.
    Finish,
    /// The action under way ends, and had none.
    Fail,
    By(Name, Move),
}

/// What a worker does, or what happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Ask,
    Claim,
    Load,
    Observe,
    Fence,
    Intend,
    Start,
    Abandon,
    Record,
    RecordUnanswered,
    Release,
    AskRenewal,
    Renew,
    HearRenewal,
    Crash,
    Restart,
    Reclaim,
}

impl Move {
    const ALL: [Self; 17] = [
        Self::Ask,
        Self::Claim,
        Self::Load,
        Self::Observe,
        Self::Fence,
        Self::Intend,
        Self::Start,
        Self::Abandon,
        Self::Record,
        Self::RecordUnanswered,
        Self::Release,
        Self::AskRenewal,
        Self::Renew,
        Self::HearRenewal,
        Self::Crash,
        Self::Restart,
        Self::Reclaim,
    ];
}

impl Transition {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let moves = Name::BOTH
            .into_iter()
            .flat_map(|name| Move::ALL.into_iter().map(move |successor| Self::By(name, successor)));
        [Self::Tick, Self::Request, Self::Fact, Self::Finish, Self::Fail].into_iter().chain(moves)
    }

    /// Whether the check of convergence leaves it out: a fault, or a new
    /// request. It counts on time, work and the restart of a dead worker.
    pub(super) const fn is_disturbance(self) -> bool {
        matches!(
            self,
            Self::Request
                | Self::Fact
                | Self::Fail
                | Self::By(_, Move::Crash | Move::RecordUnanswered)
        )
    }
}
