//! The rules of the mode, and that no restore revives an old claim.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::fixtures::{at, mk_actor};

fn mk_control() -> Control {
    Control {
        now: at(1_000),
        installation: InstallationId::new(Uuid::from_u128(7)),
        revision: Revision(4),
        freeze: None,
        observing: None,
        heartbeat: 10,
        public_url: None,
    }
}

fn why() -> Reason {
    Reason::parse("maintenance").unwrap()
}

fn mk_replica_report() -> ReplicaReport {
    ReplicaReport {
        worker: "w".to_owned(),
        lease: Duration::from_secs(30),
        acknowledged: Revision(4),
    }
}

/// Marks that were all read, with this highest value.
const fn read(highest: Option<i64>) -> Marks {
    Marks { highest, all_read: true }
}

fn after(commit: ControlCommit, now: Timestamp) -> Control {
    Control { now, ..commit.control }
}

#[test]
fn a_freeze_is_in_force_until_its_end_and_says_who_and_why() {
    let commit = freeze(&mk_control(), FREEZE_DEFAULT, &why(), &mk_actor()).unwrap();
    assert!(commit.wake_all, "what would act shows the blocker at once");
    assert_eq!(commit.control.revision, Revision(5));
    assert_eq!(commit.audit[0].verb, "control.freeze");
    assert_eq!(commit.audit[0].reason.as_deref(), Some("maintenance"));
    let frozen = after(commit, at(1_001));
    let Some(Outcome::Withheld { code, message, evidence }) = frozen.mode().withholds("apply")
    else {
        panic!("it must be withheld");
    };
    assert_eq!(code, BlockerCode::Frozen);
    assert_eq!(
        (&evidence["action"], &evidence["reason"]),
        (&json!("apply"), &json!("maintenance"))
    );
    assert!(message.contains(&mk_actor().name) && message.contains("maintenance"), "{message}");
    let over = Control { now: at(1_000).plus(FREEZE_DEFAULT), ..frozen };
    assert_eq!(over.mode(), Mode::Acting);
    assert_eq!(over.mode().withholds("apply"), None);
}

#[test]
fn a_freeze_has_an_end_within_seven_days() {
    for wrong in [Duration::ZERO, FREEZE_MAX + Duration::from_secs(1), Duration::MAX] {
        let refusal = freeze(&mk_control(), wrong, &why(), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::InvalidInput);
        assert_eq!(refusal.field.as_deref(), Some("for_seconds"));
    }
}

#[test]
fn lifting_wants_something_to_lift() {
    let control = mk_control();
    assert_eq!(unfreeze(&control, &why(), &mk_actor()).unwrap_err().kind, ErrorKind::NothingToLift);
    assert_eq!(resume(&control, &why(), &mk_actor()).unwrap_err().kind, ErrorKind::NothingToLift);
    let frozen = freeze(&control, FREEZE_DEFAULT, &why(), &mk_actor()).unwrap().control;
    let lifted = unfreeze(&frozen, &why(), &mk_actor()).unwrap();
    assert!(lifted.wake_all, "all that waited goes on at once");
    assert_eq!(lifted.control.mode(), Mode::Acting);
    let over = Control { now: frozen.now.plus(FREEZE_DEFAULT), ..frozen };
    assert!(unfreeze(&over, &why(), &mk_actor()).is_err(), "it ended by itself");
}

#[test]
fn resuming_leaves_a_freeze_in_force() {
    let frozen = freeze(&mk_control(), FREEZE_DEFAULT, &why(), &mk_actor()).unwrap().control;
    let observing = observe(&frozen, "asked for", &mk_actor()).unwrap().control;
    assert!(matches!(observing.mode(), Mode::Observing(_)), "the one without an end is shown");
    assert_eq!(observe(&observing, "again", &mk_actor()), None);
    let resumed = resume(&observing, &why(), &mk_actor()).unwrap();
    assert!(resumed.wake_all);
    assert!(matches!(resumed.control.mode(), Mode::Frozen(_)));
}

#[test]
fn a_heartbeat_ends_an_expired_freeze_and_wakes_what_waited() {
    let frozen = freeze(&mk_control(), FREEZE_DEFAULT, &why(), &mk_actor()).unwrap().control;
    let early = heartbeat(&frozen, read(Some(10)), mk_replica_report(), &mk_actor());
    assert!(!early.wake_all && early.audit.is_empty() && early.control.freeze.is_some());
    let over = Control { now: frozen.now.plus(FREEZE_DEFAULT), ..frozen };
    let late = heartbeat(&over, read(Some(10)), mk_replica_report(), &mk_actor());
    assert!(late.wake_all && late.control.freeze.is_none());
    assert_eq!(late.audit[0].verb, "control.freeze_expired");
    assert!(
        heartbeat(&late.control, read(None), mk_replica_report(), &mk_actor()).audit.is_empty(),
        "said once"
    );
}

#[test]
fn the_counter_never_passes_a_mark_that_was_not_read() {
    let unread = |highest| Marks { highest, all_read: false };
    for highest in [None, Some(9), Some(10)] {
        let commit = heartbeat(&mk_control(), unread(highest), mk_replica_report(), &mk_actor());
        assert_eq!(commit.control, mk_control(), "it rests at {highest:?}");
        assert!(commit.replica.is_some(), "the replica is heard of all the same");
    }
    let commit = heartbeat(&mk_control(), unread(Some(11)), mk_replica_report(), &mk_actor());
    assert_eq!(commit.control.heartbeat, 12, "one mark that is ahead is proof enough");
    assert!(matches!(commit.control.mode(), Mode::Observing(_)));
}

#[test]
fn a_mark_that_is_ahead_proves_a_restore() {
    for harmless in [None, Some(0), Some(9), Some(10)] {
        let commit = heartbeat(&mk_control(), read(harmless), mk_replica_report(), &mk_actor());
        assert_eq!(commit.control, Control { heartbeat: 11, ..mk_control() }, "{harmless:?}");
        assert_eq!((commit.claim_floor, commit.wake_all), (None, false));
    }
    let commit = heartbeat(&mk_control(), read(Some(11)), mk_replica_report(), &mk_actor());
    assert_eq!(
        commit.control.heartbeat, 12,
        "ahead of the high-water mark, so that it is detected once"
    );
    assert!(matches!(commit.control.mode(), Mode::Observing(_)));
    assert_eq!(commit.audit[0].verb, "control.restore_detected");
    assert!(commit.wake_all && commit.claim_floor.is_some());
}

#[test]
fn a_new_public_url_is_recorded_once() {
    let located = locate(&mk_control(), "http://a", &mk_actor()).unwrap();
    assert!(!located.wake_all);
    assert_eq!(locate(&located.control, "http://a", &mk_actor()), None);
    let moved = locate(&located.control, "http://b", &mk_actor()).unwrap();
    assert_eq!(moved.audit[0].details, json!({ "from": "http://a", "to": "http://b" }));
}

proptest! {
    /// However often a database is restored, and to whichever backup, the floor
    /// is above every claim token that was issued before.
    #[test]
    fn the_claim_floor_is_above_every_token_ever_given(
        steps in proptest::collection::vec((0..3_u8, 1..200_i64), 1..60),
    ) {
        let mut control = mk_control();
        let (mut high_water_mark, mut token, mut highest) = (0_i64, 0_i64, 0_i64);
        let mut backups = vec![(control.clone(), token)];
        for (step, amount) in steps {
            match step {
                0 => {
                    // 100 claims between two heartbeats: many for 2 s.
                    for _ in 0..amount {
                        let commit = heartbeat(&control, read(Some(high_water_mark)), mk_replica_report(), &mk_actor());
                        prop_assert_eq!(commit.claim_floor, None, "nothing was restored");
                        control = commit.control;
                        high_water_mark = high_water_mark.max(control.heartbeat);
                        token += 100;
                        highest = highest.max(token);
                    }
                }
                1 => backups.push((control.clone(), token)),
                _ => {
                    let index = usize::try_from(amount).unwrap() % backups.len();
                    (control, token) = backups[index].clone();
                    let behind = high_water_mark > control.heartbeat;
                    let commit = heartbeat(&control, read(Some(high_water_mark)), mk_replica_report(), &mk_actor());
                    prop_assert_eq!(commit.claim_floor.is_some(), behind);
                    if let Some(floor) = commit.claim_floor {
                        prop_assert!(floor.0 > highest, "{:?} <= {}", floor, highest);
                        token = token.max(floor.0);
                    }
                    control = resume(&commit.control, &why(), &mk_actor())
                        .map_or(commit.control, |commit| commit.control);
                    high_water_mark = high_water_mark.max(control.heartbeat);
                    highest = highest.max(token);
                }
            }
        }
    }
}

#[test]
fn a_database_from_a_backup_observes_and_holds_no_claim() {
    let earlier = observe(&mk_control(), "asked to", &mk_actor()).unwrap();
    for control in [mk_control(), after(earlier, at(1_001))] {
        let commit = restored(&control, "restored from a file", &mk_actor());
        let Mode::Observing(observing) = commit.control.mode() else { panic!("it acts") };
        assert_eq!(observing.reason, "restored from a file");
        assert_eq!(commit.audit[0].verb, "control.restore");
        let floor = commit.claim_floor.unwrap();
        // A high-water mark that is ahead is still detected and raises the
        // floor.
        let noticed = heartbeat(&commit.control, read(Some(11)), mk_replica_report(), &mk_actor());
        assert!(noticed.claim_floor.unwrap() > floor);
    }
}
