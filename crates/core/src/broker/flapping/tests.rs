//! Tests of the flapping window.

use proptest::prelude::*;

use super::*;
use crate::broker::attempt::StoredAttempt;
use crate::fixtures::{at, mk_snapshot, mk_stored_attempt};

/// The defaults: 5 minutes, 30 minutes and a day.
fn deadlines() -> Deadlines {
    Deadlines::default()
}

/// Declared at 1,000.
fn mk(phase: Phase, phase_since: i64, unsettled_since: i64) -> ProvisionedResource {
    ProvisionedResource::hydrate(StoredAttempt {
        created_at: at(1_000),
        updated_at: at(1_000),
        phase_since: at(phase_since),
        unsettled_since: at(unsettled_since),
        ..mk_stored_attempt(phase)
    })
    .unwrap()
}

fn advance(attempt: &ProvisionedResource, into: Phase, now: Timestamp) -> ProvisionedResource {
    attempt.advanced(into, now).unsettled(transition(attempt, into, &deadlines(), now))
}

fn blocked(snapshot: &mut ResourceSnapshot, attempt: &ProvisionedResource, now: Timestamp) -> bool {
    snapshot.now = now;
    snapshot.blockers = blocker(snapshot, attempt, &deadlines(), None).into_iter().collect();
    !snapshot.blockers.is_empty()
}

#[test]
fn a_short_ready_is_part_of_the_flapping_window_and_a_long_one_ends_it() {
    let ready = mk(Phase::Ready, 2_000, 1_100);
    assert_eq!(flapping_since(&ready, &deadlines(), at(2_299)), Some(at(1_100)));
    assert_eq!(flapping_since(&ready, &deadlines(), at(2_300)), None);
    let soon = advance(&ready, Phase::Provisioning, at(2_060));
    assert_eq!(soon.unsettled_since(), at(1_100));
    let late = advance(&ready, Phase::Provisioning, at(9_000));
    assert_eq!(late.unsettled_since(), at(9_000));
}

#[test]
fn a_window_that_began_with_its_phase_needs_no_deadline_of_its_own() {
    let waiting = mk(Phase::Provisioning, 2_000, 2_000);
    assert_eq!(flapping_deadline(&waiting, &deadlines()), None, "its own deadline is enough");
    assert_eq!(advance(&waiting, Phase::Enrolling, at(3_000)).unsettled_since(), at(2_000));
}

/// An agent that dies every minute: Ready for 50 s, Provisioning for 10 s.
#[test]
fn an_agent_that_dies_every_minute_meets_a_deadline() {
    let mut attempt = mk(Phase::Ready, 1_010, 1_000);
    let mut snapshot = mk_snapshot(Phase::Ready);
    let mut raised = None;
    for minute in 0..60 {
        let start = 1_010 + minute * 60;
        attempt = advance(&attempt, Phase::Provisioning, at(start + 50));
        let shown = blocked(&mut snapshot, &attempt, at(start + 55));
        if shown && raised.is_none() {
            raised = Some(start + 55);
        }
        assert_eq!(shown, raised.is_some(), "once raised it stays");
        attempt = advance(&attempt, Phase::Ready, at(start + 60));
        assert_eq!(blocked(&mut snapshot, &attempt, at(start + 61)), raised.is_some());
    }
    let waited = raised.expect("an hour of flapping is too long") - 1_060;
    assert!((35 * 60..37 * 60).contains(&waited), "{waited} s");

    // Somebody repairs it.
    let since = attempt.phase_since();
    assert!(blocked(&mut snapshot, &attempt, since.plus(Duration::from_secs(299))));
    assert!(!blocked(&mut snapshot, &attempt, since.plus(Duration::from_secs(300))));
}

proptest! {
    /// A resource that goes straight through its phases never gets the blocker, however
    /// long it is held in one of them.
    #[test]
    fn a_straight_walk_is_not_blamed(
        pending in 0_u64..300_000,
        provisioning in 0_u64..300_000,
        enrolling in 0_u64..300_000,
        look in 0.0_f64..1.0,
    ) {
        let mut snapshot = mk_snapshot(Phase::Pending);
        let mut attempt = mk(Phase::Pending, 1_000, 1_000);
        let walk = [
            (pending, Phase::Provisioning),
            (provisioning, Phase::Enrolling),
            (enrolling, Phase::Ready),
        ];
        for (seconds, into) in walk {
            let since = attempt.phase_since();
            let stay = Duration::from_secs(seconds);
            prop_assert!(!blocked(&mut snapshot, &attempt, since.plus(stay.mul_f64(look))));
            attempt = advance(&attempt, into, since.plus(stay));
        }
        let since = attempt.phase_since();
        prop_assert!(!blocked(&mut snapshot, &attempt, since));
    }

    /// A resource that never settles gets the blocker in whatever order it goes
    /// through the phases: at the latest in the first phase before Ready that
    /// follows the sum of all deadlines, counted from its first step back.
    #[test]
    fn whatever_never_settles_is_blamed_in_the_end(
        steps in proptest::collection::vec((0_usize..4, 1_u64..300), 2..200),
    ) {
        const PHASES: [Phase; 4] =
            [Phase::Pending, Phase::Provisioning, Phase::Enrolling, Phase::Ready];
        let walk = deadlines().pending + deadlines().provisioning + deadlines().enrolling;
        let mut snapshot = mk_snapshot(Phase::Pending);
        let mut attempt = mk(Phase::Pending, 1_000, 1_000);
        let mut now = at(1_001);
        let mut first_back = None;
        for (phase, seconds) in steps {
            // Ready after Ready would be one long Ready, not two short ones.
            if PHASES[phase] == Phase::Ready && attempt.phase() == Phase::Ready {
                continue;
            }
            if PHASES[phase] < attempt.phase() {
                first_back.get_or_insert(now);
            }
            attempt = advance(&attempt, PHASES[phase], now);
            now = now.plus(Duration::from_secs(seconds));
            prop_assert_eq!(attempt.unsettled_since(), first_back.unwrap_or(at(1_000)));
        }
        if attempt.phase() == Phase::Ready {
            attempt = advance(&attempt, Phase::Enrolling, now);
        }
        let since = attempt.unsettled_since();
        let late = since.plus(walk).max(now);
        let again = first_back.is_some() && attempt.phase_since() > since;
        prop_assert_eq!(blocked(&mut snapshot, &attempt, late), again);
    }
}
