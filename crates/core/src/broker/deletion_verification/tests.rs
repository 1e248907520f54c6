//! Tests of the second proof of absence.

use crate::broker::BrokerWrite;
use crate::deletion::DeletionWrite;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::blocker::{BlockerCode, Deadlines};
use crate::broker::decide::{Obstacle, Outcome, decide};
use crate::broker::phase::Phase;
use crate::broker::prepare::Read;
use crate::broker::record::{Pace, record};
use crate::fixtures::{at, mk_actor, mk_facts, mk_node, mk_report, mk_snapshot};
use crate::ids::DrainId;
use crate::operations::control::Mode;

const LEASE: Duration = Duration::from_secs(20);
const SWEEP: Duration = Duration::from_secs(30);

/// Deleted at second 900, observed `after` seconds later.
fn deleted(after: i64) -> ResourceSnapshot {
    ResourceSnapshot { now: at(900 + after), ..mk_snapshot(Phase::Deleted) }
}

fn unknown() -> CompositeReport {
    CompositeReport::Unknown { reason: "no route".to_owned() }
}

fn foreign() -> CompositeReport {
    CompositeReport::Foreign { reason: "it belongs to the installation x".to_owned() }
}

/// One tick at Deleted, with the loop's own choice of action.
fn observe(snapshot: &ResourceSnapshot, report: &CompositeReport, outcome: Outcome) -> Commit {
    let decision = decide(snapshot, report, &mk_facts(), &Mode::Acting, snapshot.now);
    assert_eq!((decision.action, decision.phase), (action(snapshot, report), Phase::Deleted));
    let tick = Tick {
        read: Read::of(snapshot),
        report,
        decision: &decision,
        outcome,
        drain_id: DrainId::new(Uuid::from_u128(600)),
        pace: Pace { deadlines: Deadlines::default(), sweep: SWEEP, lease: LEASE },
        jitter: 0.5,
    };
    record(snapshot, &tick, &mk_actor()).unwrap()
}

/// The snapshot after a commit, as the store would load it.
fn after(mut snapshot: ResourceSnapshot, commit: &Commit) -> ResourceSnapshot {
    for write in &commit.writes {
        match write {
            Write::Broker(BrokerWrite::AttemptUpdate(attempt)) => {
                snapshot.attempt = attempt.clone();
            }
            Write::Broker(BrokerWrite::ObservedReplace(_, seen)) => {
                snapshot.observed = Some(seen.clone());
            }
            Write::BlockersReplace(_, blockers) => snapshot.blockers.clone_from(blockers),
            Write::Release(release) => snapshot.failures = release.failures,
            _ => {}
        }
    }
    snapshot
}

fn leaks(commit: &Commit) -> Vec<LeakRecord> {
    let leak = |write: &Write| match write {
        Write::Deletion(DeletionWrite::LeakInsert(leak)) => Some(leak.clone()),
        _ => None,
    };
    commit.writes.iter().filter_map(leak).collect()
}

fn recheck(commit: &Commit) -> Recheck {
    let release = |write: &Write| match write {
        Write::Release(release) => Some(release.recheck),
        _ => None,
    };
    commit.writes.iter().find_map(release).unwrap()
}

fn codes(snapshot: &ResourceSnapshot) -> Vec<BlockerCode> {
    snapshot.blockers.iter().map(|blocker| blocker.code).collect()
}

/// Invariant 6: one lease after Deleted, and not before.
#[test]
fn absence_is_proven_a_second_time_one_lease_after_deleted() {
    let early = deleted(5);
    let commit = observe(&early, &CompositeReport::Absent, Outcome::Done);
    assert_eq!(recheck(&commit), Recheck::After(Duration::from_secs(15)));
    assert_eq!(after(early, &commit).attempt.absence_proven_at(), None);

    let due = deleted(20);
    let commit = observe(&due, &CompositeReport::Absent, Outcome::Done);
    assert_eq!(recheck(&commit), Recheck::Never);
    assert_eq!(commit.audit[0].verb, PROVEN);
    assert!(
        commit
            .writes
            .contains(&Write::Deletion(DeletionWrite::LeaksResolve(due.attempt.id().into())))
    );
    assert!(commit.events.is_empty(), "it was announced when it became Deleted");
    let proven = after(due, &commit);
    assert_eq!(proven.attempt.absence_proven_at(), Some(proven.now));

    let again = observe(&proven, &CompositeReport::Absent, Outcome::Done);
    assert_eq!(again.only_release().expect("nothing else").recheck, Recheck::Never);
}

/// Invariant 2: every object observed at Deleted is a leak, recorded before it
/// is removed, and recorded once.
#[test]
fn what_is_observed_at_deleted_is_a_leak_record() {
    let snapshot = deleted(20);
    let report = mk_report(true);
    assert_eq!(action(&snapshot, &report), Action::Noop, "it is not on record yet");
    let first = observe(&snapshot, &report, Outcome::Done);
    let [leak] = &leaks(&first)[..] else { panic!("{first:?}") };
    assert_eq!((leak.kind, leak.subject), ("composite", snapshot.attempt.id().into()));
    assert_eq!(leak.evidence["uid"], "uid-1");
    assert_eq!((first.audit[0].verb, recheck(&first)), (FOUND, Recheck::Now));

    let recorded = after(snapshot.clone(), &first);
    assert_eq!(action(&recorded, &report), Action::DeleteSubstrate);
    let second = observe(&recorded, &report, Outcome::Done);
    assert!(leaks(&second).is_empty() && second.audit.is_empty(), "the same is not found twice");
    assert!(matches!(recheck(&second), Recheck::After(delay) if delay <= SWEEP));

    let mut another = mk_report(true);
    if let CompositeReport::Present(live) = &mut another {
        live.uid = "uid-2".to_owned();
    }
    assert_eq!(action(&recorded, &another), Action::Noop);
    let third = observe(&recorded, &another, Outcome::Done);
    assert_ne!(leaks(&third)[0].id, leak.id, "another object is another finding");

    let gone = observe(&after(recorded, &second), &CompositeReport::Absent, Outcome::Done);
    assert!(
        gone.writes
            .contains(&Write::Deletion(DeletionWrite::LeaksResolve(snapshot.attempt.id().into())))
    );
}

/// Invariant 3: a failed read proves nothing, however long it lasts.
#[test]
fn what_cannot_be_read_is_never_proven_gone() {
    let mut previous = Duration::ZERO;
    for waited in [20, 60, 600, 100_000] {
        let snapshot = deleted(waited);
        let commit = observe(&snapshot, &unknown(), Outcome::Done);
        let blocked = after(snapshot, &commit);
        assert_eq!(codes(&blocked), [BlockerCode::SubstrateUnknown]);
        assert_eq!(blocked.attempt.absence_proven_at(), None);
        let Recheck::After(delay) = recheck(&commit) else { panic!("{commit:?}") };
        assert!(delay > previous && delay <= SWEEP * RARELY, "{waited}: {delay:?}");
        previous = delay;
        let readable = observe(&blocked, &CompositeReport::Absent, Outcome::Done);
        assert_eq!(codes(&after(blocked, &readable)), []);
    }
}

#[test]
fn what_is_not_ours_is_recorded_and_left_alone() {
    let snapshot = deleted(20);
    let commit = observe(&snapshot, &foreign(), Outcome::Done);
    assert_eq!(leaks(&commit)[0].kind, "foreign_composite");
    let recorded = after(snapshot, &commit);
    assert_eq!(codes(&recorded), [BlockerCode::SubstrateUnknown]);
    assert_eq!(action(&recorded, &foreign()), Action::Noop);
    let again = observe(&recorded, &foreign(), Outcome::Done);
    assert!(again.only_release().is_some(), "nothing is written twice: {again:?}");
}

#[test]
fn a_refused_removal_backs_off_and_is_shown() {
    let report = mk_report(true);
    let found = deleted(20);
    let recorded = after(found.clone(), &observe(&found, &report, Outcome::Done));
    let refused = Outcome::Failed(Obstacle::new(BlockerCode::DeleteFailed, "forbidden"));
    let commit = observe(&recorded, &report, refused);
    assert_eq!(recheck(&commit), Recheck::After(Duration::from_millis(250)));
    let failed = after(recorded, &commit);
    assert_eq!((codes(&failed), failed.failures), (vec![BlockerCode::DeleteFailed], 1));
}

#[test]
fn a_finding_takes_back_an_earlier_proof() {
    let due = deleted(20);
    let proven = after(due.clone(), &observe(&due, &CompositeReport::Absent, Outcome::Done));
    let doubted = after(proven.clone(), &observe(&proven, &mk_report(true), Outcome::Done));
    assert_eq!(doubted.attempt.absence_proven_at(), None);
    let unread = after(proven.clone(), &observe(&proven, &unknown(), Outcome::Done));
    assert!(unread.attempt.absence_proven_at().is_some(), "not knowing takes nothing back");
}

proptest! {
    /// Whatever the ticks observe: nothing is removed that is not recorded or
    /// not ours, never before its node, and a proof needs an absence that was
    /// observed one lease after Deleted.
    #[test]
    fn any_sequence_of_observations_is_safe(
        looks in proptest::collection::vec((0_i64..30, 0_usize..5, any::<bool>()), 1..30),
    ) {
        let mut snapshot = deleted(0);
        let mut recorded = Vec::new();
        for (passed, seen, registered) in looks {
            snapshot.now = snapshot.now.plus(Duration::from_secs(passed.unsigned_abs()));
            snapshot.node = registered.then(mk_node);
            let mut other = mk_report(false);
            if let CompositeReport::Present(live) = &mut other {
                live.uid = "uid-2".to_owned();
            }
            let report = match seen {
                0 => CompositeReport::Absent,
                1 => unknown(),
                2 => foreign(),
                3 => mk_report(true),
                _ => other,
            };
            let before = snapshot.attempt.absence_proven_at();
            if action(&snapshot, &report) == Action::DeleteSubstrate {
                prop_assert!(!registered);
                prop_assert!(recorded.contains(&report.live().unwrap().uid));
            }
            let commit = observe(&snapshot, &report, Outcome::Done);
            for leak in leaks(&commit).iter().filter(|leak| leak.kind == "composite") {
                recorded.push(leak.evidence["uid"].as_str().unwrap().to_owned());
            }
            snapshot = after(snapshot, &commit);
            if before.is_none() && snapshot.attempt.absence_proven_at().is_some() {
                prop_assert!(matches!(report, CompositeReport::Absent) && !registered);
                prop_assert!(snapshot.now >= at(900).plus(LEASE));
            }
            if snapshot.attempt.absence_proven_at().is_none() {
                prop_assert_ne!(recheck(&commit), Recheck::Never, "it is looked at until it is proven");
            }
            prop_assert_eq!(snapshot.attempt.phase(), Phase::Deleted);
        }
    }
}
