//! With the conditions that are sent, however late a write takes effect, it does no
//! harm; with any one of them missing, it does. Each run is exhaustive and takes a few
//! seconds in a debug build.

use std::collections::BTreeSet;

use super::config::{
    Conditions, Config, Count, CreateNames, DeleteNames, Kind, Rules, UpdateNames,
};
use super::machine::Property::{
    self, ASettledRowAgrees, Converges, NoOlderClaimOnTop, NothingInUseIsDeleted,
};
use super::machine::{Move, Transition};
use super::state::State;
use crate::model::checker::{Model, run};
use crate::model::state::Name;
use crate::{Actions, EarlierClaims};

/// What ships: claims of remote actions lapse.
const COMPOSITE: Config = Config::composite(Actions::Remote.earlier_claims());
const SHARED: Config = Config::shared(Actions::Remote.earlier_claims());

fn holds(config: &Config) {
    let report = run(config);
    let broken: Vec<_> = report.broken.keys().collect();
    assert!(broken.is_empty(), "{broken:?} do not hold; the ways there are printed above");
    // A transition that never happens is a part of the protocol that is not checked. The
    // workers are interchangeable: what one of them does is checked for both.
    let mut unused = match config.kind {
        Kind::Composite => vec![Transition::Declare, Transition::Undeclare],
        Kind::Shared => vec![
            Transition::Change,
            Transition::ChangeBack,
            Transition::Delete,
            Transition::By(Name::A, Move::Record),
        ],
    };
    if config.rules.earlier_claims == EarlierClaims::Lapse {
        unused.push(Transition::By(Name::A, Move::Restart));
    }
    let by_nobody = |transition: &Transition| match *transition {
        Transition::By(Name::B, _) => false,
        Transition::By(Name::A, made) => {
            report.never_taken.contains(&Transition::By(Name::B, made))
        }
        _ => true,
    };
    let never_taken: Vec<_> = report.never_taken.iter().copied().filter(by_nobody).collect();
    assert_eq!(never_taken, unused);
    assert!(report.states > 5_000, "a space of {} states is no check", report.states);
}

/// Expects exactly these broken properties, so that a test shows what a condition is for.
fn breaks(config: &Config, expected: &[Property]) {
    assert_eq!(run(config).broken.into_keys().collect::<Vec<_>>(), expected);
}

#[test]
fn no_older_claim_ends_on_top_however_late_a_write_lands() {
    holds(&COMPOSITE);
}

#[test]
fn nothing_in_use_is_deleted_however_late_a_write_lands() {
    holds(&SHARED);
}

/// The conditions do not depend on the time of the next claim. What a claim that lapses
/// adds is in the model of claims: `taking_claims_back_at_once_lets_late_actions_overlap`.
#[test]
fn the_conditions_hold_even_if_claims_are_taken_back_at_once() {
    let taken_back = EarlierClaims::TakenBack;
    holds(&Config::composite(taken_back));
    holds(&Config::shared(taken_back));
}

/// A create that was given up lands on the object of a newer claim, with a token that
/// the registry has revoked.
#[test]
fn an_unconditional_create_is_found() {
    let conditions = Conditions { create: CreateNames::Nothing, ..COMPOSITE.conditions };
    breaks(&Config { conditions, ..COMPOSITE }, &[NoOlderClaimOnTop, ASettledRowAgrees, Converges]);
}

#[test]
fn an_update_without_the_version_is_found() {
    let conditions = Conditions { update: UpdateNames::Uid, ..COMPOSITE.conditions };
    breaks(&Config { conditions, ..COMPOSITE }, &[NoOlderClaimOnTop, ASettledRowAgrees, Converges]);
}

/// It makes an object again that was deleted for good.
#[test]
fn an_update_without_the_uid_is_found() {
    let conditions = Conditions { update: UpdateNames::Version, ..COMPOSITE.conditions };
    breaks(&Config { conditions, ..COMPOSITE }, &[ASettledRowAgrees, Converges]);
}

/// Read again after a conflict, the object may be a newer claim's.
#[test]
fn a_retry_that_does_not_compare_claims_is_found() {
    let rules = Rules { retry_compares_claims: false, ..COMPOSITE.rules };
    breaks(&Config { rules, ..COMPOSITE }, &[NoOlderClaimOnTop, ASettledRowAgrees, Converges]);
}

/// The uid is enough for a composite only because its deletion is final.
#[test]
fn a_delete_by_uid_alone_needs_a_deletion_that_is_final() {
    let rules = Rules { deletion_is_taken_back: true, ..COMPOSITE.rules };
    breaks(&Config { rules, ..COMPOSITE }, &[NothingInUseIsDeleted, ASettledRowAgrees, Converges]);
}

#[test]
fn a_delete_of_a_shared_object_by_uid_alone_is_found() {
    let conditions = Conditions { delete: DeleteNames::Uid, ..SHARED.conditions };
    breaks(&Config { conditions, ..SHARED }, &[NothingInUseIsDeleted, ASettledRowAgrees]);
}

/// An apply that changes nothing keeps the version, and the late delete names it.
#[test]
fn taking_a_removal_back_without_a_change_is_found() {
    let rules = Rules { count: Count::Absent, ..SHARED.rules };
    breaks(&Config { rules, ..SHARED }, &[NothingInUseIsDeleted, ASettledRowAgrees]);
}

/// A pass that was paused for long admits on what it saw before another replica's
/// removal. Meanwhile a late create brought the object back with an older count, so that
/// the removal left the recorded one alone.
#[test]
fn a_count_that_some_removal_does_not_raise_is_found() {
    let rules = Rules { count: Count::RaisedAboveTheObject, ..SHARED.rules };
    breaks(&Config { rules, ..SHARED }, &[NothingInUseIsDeleted]);
}

/// A pass that was paused admits on an answer from before another replica's removal: its
/// commit does not name its claim.
#[test]
fn a_count_that_only_taking_back_raises_is_found() {
    let rules = Rules { count: Count::RaisedByTakingBack, ..SHARED.rules };
    breaks(&Config { rules, ..SHARED }, &[NothingInUseIsDeleted, ASettledRowAgrees]);
}

#[test]
fn admitting_before_the_answer_is_found() {
    let rules = Rules { admits_after_the_answer: false, ..SHARED.rules };
    breaks(&Config { rules, ..SHARED }, &[NothingInUseIsDeleted]);
}

/// Renaming claims, requests and workers makes the space small and must not change
/// behaviour: along random paths the renamed state leads to the same states as the state
/// itself.
#[test]
fn renaming_changes_no_behaviour() {
    let successors = |config: &Config, state: &State| -> BTreeSet<(State, Option<Property>)> {
        let all = Config::transitions().into_iter();
        let next = all.filter_map(|transition| config.successor(state, transition));
        next.map(|next| (next.state.canonical(), next.broken)).collect()
    };
    for (seed, config) in (0..200_u64).zip([COMPOSITE, SHARED].into_iter().cycle()) {
        let mut random = seed;
        let mut state = State::initial();
        for _ in 0..60 {
            let renamed = successors(&config, &state.canonical());
            assert_eq!(successors(&config, &state), renamed, "seed {seed}: {state:?}");
            let open: Vec<_> = Config::transitions()
                .into_iter()
                .filter_map(|transition| config.successor(&state, transition))
                .collect();
            // Knuth's linear congruential generator; the high bits are the random ones.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let count = u64::try_from(open.len()).unwrap();
            if count == 0 {
                // Deleted for good, and nothing is under way.
                break;
            }
            state = open[usize::try_from((random >> 33) % count).unwrap()].state;
        }
    }
}
