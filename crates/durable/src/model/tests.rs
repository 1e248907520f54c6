//! The protocol as it is keeps every property; without any one of its rules, or
//! of its assumptions, it does not. Each run is exhaustive and takes about a
//! second in a debug build.

use super::checker::{Model, run};
use super::config::{
    AfterNoAnswer, Assumptions, Config, Landing, LeaseCheck, LeaseStart, Protocol, RenewalNames,
    Renewing, Times,
};
use super::machine::Successor;
use super::properties::Property::{
    self, ALeaseHasAHolder, Converges, EnoughLeaseToAct, NoActionsOverlap, NoWakeIsLost,
    NoWriteUnderALostClaim,
};
use super::state::{Name, State};
use super::transition::{Move, Transition};
use crate::EarlierClaims;

const SOUND: Config = Config::sound();
const REMOTE: Config = Config::remote();

/// For runs with a space several times as large (renewal, actions that outlive their
/// worker or their deadline): the shortest lease under which an action can start.
const SHORT: Times = Times { lease: 2, action_deadline: 1, recheck: 1 };

/// The moves that never happen in a run of the sound protocol without renewal,
/// in the order of the moves.
const UNUSED: [Move; 5] =
    [Move::Fence, Move::Abandon, Move::AskRenewal, Move::Renew, Move::HearRenewal];

/// One worker renews its claims.
const RENEWING: Config = Config { renewing: Renewing::One, times: SHORT, ..SOUND };

fn holds(config: &Config, unused: &[Move]) {
    let report = run(config);
    let broken: Vec<_> = report.broken.keys().collect();
    assert!(broken.is_empty(), "{broken:?} do not hold; the ways there are printed above");
    // A transition that never happens is a part of the protocol that is not checked.
    let renewing = |name, successor| match config.renewing {
        Renewing::Nobody => false,
        Renewing::One => name == Name::A && is_renewal(successor),
        Renewing::Both => is_renewal(successor),
    };
    let unused: Vec<_> = Name::BOTH
        .into_iter()
        .flat_map(|name| {
            let unused = unused.iter().filter(move |successor| !renewing(name, **successor));
            unused.map(move |successor| Transition::By(name, *successor))
        })
        .collect();
    assert_eq!(report.never_taken, unused);
    assert!(report.states > 10_000, "a space of {} states is no check", report.states);
}

fn is_renewal(successor: Move) -> bool {
    matches!(successor, Move::AskRenewal | Move::Renew | Move::HearRenewal)
}

/// Expects exactly these broken properties, so that a test shows what a rule is for.
fn breaks(config: &Config, expected: &[Property]) {
    let report = run(config);
    assert_eq!(report.broken.into_keys().collect::<Vec<_>>(), expected);
}

#[test]
fn the_protocol_holds_in_every_reachable_state() {
    holds(&SOUND, &UNUSED);
    let longer = Times { lease: 4, action_deadline: 2, recheck: 1 };
    holds(&Config { times: longer, ..SOUND }, &UNUSED);
}

/// Actions that take effect before their lease ends, although their worker gave up or
/// died: the next claim observes what they did.
#[test]
fn it_holds_for_actions_that_outlive_their_worker_if_leases_are_waited_for() {
    let unused = [Move::Fence, Move::AskRenewal, Move::Renew, Move::HearRenewal, Move::Reclaim];
    holds(&REMOTE, &unused);
    holds(&Config { times: SHORT, ..REMOTE }, &unused);
}

/// A worker that was paused beyond its lease overwrites its successor's write
/// and releases a lease that is not its own; the rest follows.
#[test]
fn without_the_claim_token_a_late_write_is_found() {
    let protocol = Protocol { writes_name_the_claim: false, ..SOUND.protocol };
    breaks(
        &Config::with_protocol(protocol),
        &[NoWriteUnderALostClaim, NoWakeIsLost, EnoughLeaseToAct, NoActionsOverlap],
    );
}

#[test]
fn without_the_wake_comparison_a_lost_wake_is_found() {
    let protocol = Protocol { release_compares_wake: false, ..SOUND.protocol };
    breaks(&Config::with_protocol(protocol), &[NoWakeIsLost, Converges]);
}

/// No later tick observes an action that ends after its successor has settled the row.
#[test]
fn without_the_lease_check_overlapping_actions_are_found() {
    let protocol = Protocol { lease_check: LeaseCheck::Absent, ..SOUND.protocol };
    breaks(&Config::with_protocol(protocol), &[NoWakeIsLost, EnoughLeaseToAct, NoActionsOverlap]);
}

/// With exactly the deadline left, the action ends in the instant in which the
/// next claim succeeds.
#[test]
fn a_lease_check_that_is_not_strict_lets_actions_touch() {
    let protocol = Protocol { lease_check: LeaseCheck::AtLeastDeadline, ..SOUND.protocol };
    breaks(&Config::with_protocol(protocol), &[NoWakeIsLost, EnoughLeaseToAct, NoActionsOverlap]);
}

#[test]
fn a_lease_counted_from_the_answer_is_believed_too_long() {
    let protocol = Protocol { lease_counts_from: LeaseStart::AfterTheAnswer, ..SOUND.protocol };
    breaks(&Config::with_protocol(protocol), &[NoWakeIsLost, EnoughLeaseToAct, NoActionsOverlap]);
}

/// An intent that only reads the claim token, without a lock that keeps claims out
/// until it commits, may be written after a takeover. Nothing follows from it: its
/// revision makes the successor load again, and the lease forbids the action.
#[test]
fn an_intent_that_lets_claims_in_is_a_late_write_and_no_more() {
    let protocol = Protocol { intent_keeps_claims_out: false, ..SOUND.protocol };
    breaks(&Config::with_protocol(protocol), &[NoWriteUnderALostClaim]);
}

/// The new life observes the outside while a request of its earlier life is under way.
#[test]
fn taking_claims_back_at_once_lets_late_actions_overlap() {
    let protocol = Protocol { earlier_claims: EarlierClaims::TakenBack, ..REMOTE.protocol };
    let config = Config { protocol, times: SHORT, ..REMOTE };
    breaks(&config, &[NoWakeIsLost, NoActionsOverlap]);
}

/// The next tick observes the outside while the request that nobody answered is under
/// way. It would mint a token anew, and revoke the one that is about to arrive.
#[test]
fn a_claim_released_after_no_answer_lets_late_actions_overlap() {
    let protocol = Protocol { after_no_answer: AfterNoAnswer::IsReleased, ..REMOTE.protocol };
    let config = Config { protocol, times: SHORT, ..REMOTE };
    breaks(&config, &[NoWakeIsLost, NoActionsOverlap]);
}

/// The limit of what a lease can promise. What holds beyond it is in `late`.
#[test]
fn an_action_beyond_its_lease_is_beyond_its_promise() {
    let assumptions = Assumptions { landing: Landing::AtAnyTime, ..REMOTE.assumptions };
    let config = Config { assumptions, times: SHORT, ..REMOTE };
    breaks(&config, &[NoWakeIsLost, NoActionsOverlap]);
}

#[test]
fn it_holds_while_a_worker_renews_its_claims() {
    holds(&RENEWING, &UNUSED);
}

/// The run with two renewing workers, and with room for delays: a hundred times the size.
#[test]
#[ignore = "takes minutes; run it in release when renewal changes"]
fn it_holds_while_both_renew_their_claims() {
    holds(&Config { renewing: Renewing::Both, ..RENEWING }, &UNUSED);
    holds(&Config { times: SOUND.times, ..RENEWING }, &UNUSED);
}

/// A worker whose claim was taken over would hear that it still has it.
#[test]
fn a_renewal_that_does_not_name_the_claim_token_is_found() {
    let protocol = Protocol { renewal_names: RenewalNames::RowOnly, ..SOUND.protocol };
    breaks(
        &Config { protocol, ..RENEWING },
        &[NoWakeIsLost, ALeaseHasAHolder, EnoughLeaseToAct, NoActionsOverlap],
    );
}

/// A release leaves the token as it is, so the token alone does not show that
/// the claim was released.
#[test]
fn a_renewal_of_what_was_given_back_is_found() {
    let protocol = Protocol { renewal_names: RenewalNames::ClaimToken, ..SOUND.protocol };
    breaks(&Config { protocol, ..RENEWING }, &[ALeaseHasAHolder]);
}

#[test]
fn a_renewed_lease_counted_from_the_answer_is_believed_too_long() {
    let protocol = Protocol { renewal_counts_from: LeaseStart::AfterTheAnswer, ..SOUND.protocol };
    breaks(&Config { protocol, ..RENEWING }, &[NoWakeIsLost, EnoughLeaseToAct, NoActionsOverlap]);
}

/// Renaming the counters makes the space finite and must not change behaviour:
/// along random paths the renamed state allows the same transitions as the
/// state itself, with the same result.
#[test]
fn renaming_the_counters_changes_no_behaviour() {
    let renewing = Config { renewing: Renewing::Both, ..SOUND };
    for seed in 0..200_u64 {
        let mut random = seed;
        let mut state = State::initial();
        for _ in 0..200 {
            let mut open = Vec::new();
            for transition in Transition::all() {
                let itself = renewing.successor(&state, transition);
                let renamed = renewing.successor(&state.canonical(), transition);
                let ends = |successor: Option<Successor>| {
                    successor.map(|successor| (successor.state.canonical(), successor.broken))
                };
                assert_eq!(ends(itself), ends(renamed), "seed {seed}: {transition:?} of {state:?}");
                open.extend(itself);
            }
            // Knuth's linear congruential generator; the high bits are the random ones.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let count = u64::try_from(open.len()).unwrap();
            state = open[usize::try_from((random >> 33) % count).unwrap()].state;
        }
    }
}
