//! The switches of the model: what the protocol does, and what it relies on.
//! A mutation is a configuration with one of them turned.

/// A configuration to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Config {
    pub(super) protocol: Protocol,
    pub(super) assumptions: Assumptions,
    pub(super) times: Times,
    pub(super) renewing: Renewing,
}

/// The rules. Each of them is needed; the tests take them out one by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protocol {
    /// Every write of a worker holds only under the claim token that it got.
    pub(super) writes_name_the_claim: bool,
    /// A release makes the row due at once if `wake` moved since the claim.
    pub(super) release_compares_wake: bool,
    /// What is asked of the lease before an outside action.
    pub(super) lease_check: LeaseCheck,
    /// From when on a worker counts its lease.
    pub(super) lease_counts_from: LeaseStart,
    /// What a renewal asks of the row.
    pub(super) renewal_names: RenewalNames,
    /// From when on a worker counts the lease that a renewal gave it.
    pub(super) renewal_counts_from: LeaseStart,
    /// No claim gets in between the fence of an intent and its commit.
    pub(super) intent_keeps_claims_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseCheck {
    /// Strictly more lease left than the action may take: `Lease::allows`.
    MoreThanDeadline,
    /// As much would do.
    AtLeastDeadline,
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenewalNames {
    /// The claim token, and that the claim was not given back.
    LeasedClaim,
    /// The claim token alone, which a release leaves as it is.
    ClaimToken,
    /// The row, whoever has it.
    RowOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseStart {
    /// The moment before the statement is sent.
    BeforeTheStatement,
    /// The moment its answer is there.
    AfterTheAnswer,
}

/// What the protocol relies on and cannot enforce by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assumptions {
    /// An outside action is over when its deadline has passed. It does not hold
    /// for a process that is stopped between the lease check and the action,
    /// or in it, nor for one that abandons the action and leaves it running;
    /// what such a late action does is limited by the outside world's own
    /// conditions (uid of what is deleted, claim token on what is made).
    pub(super) actions_end_by_their_deadline: bool,
    /// What happens to an action whose worker dies.
    pub(super) crash: Crash,
    /// A new life of a worker takes over at once what the earlier one held.
    pub(super) new_life_reclaims: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crash {
    /// It is carried out by the worker's own process and dies with it.
    EndsItsAction,
    /// It was sent away and goes on without the worker.
    LeavesItsActionRunning,
}

/// In ticks. Small, but with room for one tick of delay before an action and
/// one after it: 3 of lease, 1 of action.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) lease: u8,
    pub(super) action_deadline: u8,
    /// When a row that is under way is looked at again.
    pub(super) recheck: u8,
}

/// Who renews its claims. A renewal on its way multiplies the space, so most
/// runs do without: a worker that does not renew is one whose batch was short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewing {
    Nobody,
    /// The two differ in nothing else, so which one does not matter; what the
    /// other may do to it (claim, act, write, crash) is all there.
    One,
    Both,
}

impl Config {
    /// The protocol as it is meant, with actions in the worker's own process.
    pub(super) const fn sound() -> Self {
        Self {
            protocol: Protocol {
                writes_name_the_claim: true,
                release_compares_wake: true,
                lease_check: LeaseCheck::MoreThanDeadline,
                lease_counts_from: LeaseStart::BeforeTheStatement,
                renewal_names: RenewalNames::LeasedClaim,
                renewal_counts_from: LeaseStart::BeforeTheStatement,
                intent_keeps_claims_out: true,
            },
            assumptions: Assumptions {
                actions_end_by_their_deadline: true,
                crash: Crash::EndsItsAction,
                new_life_reclaims: true,
            },
            times: Times { lease: 3, action_deadline: 1, recheck: 1 },
            renewing: Renewing::Nobody,
        }
    }

    pub(super) const fn with_protocol(protocol: Protocol) -> Self {
        Self { protocol, ..Self::sound() }
    }

    pub(super) const fn with_assumptions(assumptions: Assumptions) -> Self {
        Self { assumptions, ..Self::sound() }
    }
}
