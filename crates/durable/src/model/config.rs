//! The switches of the model: what the protocol does, and what it assumes. A
//! mutation is a configuration with one of them flipped.

use crate::{Actions, EarlierClaims};

/// A configuration to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Config {
    pub(super) protocol: Protocol,
    pub(super) assumptions: Assumptions,
    pub(super) times: Times,
    pub(super) renewing: Renewing,
}

/// The rules. Each of them is needed; the tests disable them one by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protocol {
    /// Every write of a worker succeeds only under the claim token that it got.
    pub(super) writes_name_the_claim: bool,
    /// A release makes the row due at once if `wake` moved since the claim.
    pub(super) release_compares_wake: bool,
    /// The lease check before an outside action.
    pub(super) lease_check: LeaseCheck,
    /// From when on a worker counts its lease.
    pub(super) lease_counts_from: LeaseStart,
    /// What a renewal compares in the row.
    pub(super) renewal_names: RenewalNames,
    /// From when on a worker counts the lease that a renewal granted.
    pub(super) renewal_counts_from: LeaseStart,
    /// No claim comes between the fence of an intent and its commit.
    pub(super) intent_keeps_claims_out: bool,
    /// What a new life does about the claims of its earlier one.
    pub(super) earlier_claims: EarlierClaims,
    /// What becomes of the claim after an action that nobody answered.
    pub(super) after_no_answer: AfterNoAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterNoAnswer {
    /// It stays until its lease has ended; the record is written without a release.
    Lapses,
    /// It is released, as after any other action.
    IsReleased,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseCheck {
    /// Strictly more lease left than the action may take: `Lease::allows`.
    MoreThanDeadline,
    /// An equal lease suffices.
    AtLeastDeadline,
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenewalNames {
    /// The claim token, and that the claim was not released.
    LeasedClaim,
    /// The claim token alone, which a release leaves as it is.
    ClaimToken,
    /// The row, whoever holds it.
    RowOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseStart {
    /// The moment before the statement is sent.
    BeforeTheStatement,
    /// The moment the answer arrives.
    AfterTheAnswer,
}

/// What the protocol assumes and cannot enforce by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assumptions {
    pub(super) landing: Landing,
    /// Who carries the actions out: those of the process die with it.
    pub(super) actions: Actions,
}

/// By when an action has taken effect, if it ever does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landing {
    /// By its deadline, at which its worker gives up.
    ByTheDeadline,
    /// Before the lease ends that it was started under, whoever still waits for it.
    WithinTheLease,
    /// At any time: a process was stopped between the lease check and the action, or
    /// another system took its time. The conditions of the write limit what it does
    /// then, see [`super::late`].
    AtAnyTime,
}

/// In ticks. Small, but with room for one tick of delay before an action and
/// one after it: 3 of lease, 1 of action.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) lease: u8,
    pub(super) action_deadline: u8,
    /// How long until a row that is under way is due again.
    pub(super) recheck: u8,
}

/// Who renews its claims. A renewal under way multiplies the space, so most
/// runs do without: a worker that does not renew is one whose batch was short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewing {
    Nobody,
    /// The two workers differ in nothing else, so it does not matter which one renews;
    /// everything that the other may do to it (claim, act, write, crash) is included.
    One,
    Both,
}

impl Config {
    /// The intended protocol, with actions in the worker's own process.
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
                earlier_claims: Actions::InProcess.earlier_claims(),
                after_no_answer: AfterNoAnswer::Lapses,
            },
            assumptions: Assumptions {
                landing: Landing::ByTheDeadline,
                actions: Actions::InProcess,
            },
            times: Times { lease: 3, action_deadline: 1, recheck: 1 },
            renewing: Renewing::Nobody,
        }
    }

    /// The intended protocol, with actions that are sent to another system. The claims
    /// are treated as [`Actions`] says, which is what the loops ask too.
    pub(super) const fn remote() -> Self {
        let sound = Self::sound();
        let actions = Actions::Remote;
        Self {
            protocol: Protocol { earlier_claims: actions.earlier_claims(), ..sound.protocol },
            assumptions: Assumptions { landing: Landing::WithinTheLease, actions },
            ..sound
        }
    }

    pub(super) const fn with_protocol(protocol: Protocol) -> Self {
        Self { protocol, ..Self::sound() }
    }
}
