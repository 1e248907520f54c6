//! The rules of the mode, and that no restore revives an old claim.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::fixtures::{at, mk_actor};

fn mk_control() -> Control {
    Control {
        // Heartbeats count from the time, which must not hide what tests count.
        now: at(0),
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
        outlives: Duration::from_secs(30),
        acknowledged: Revision(4),
    }
}

const HERE: MarkKey = (Partition::new(Uuid::from_u128(1)), Engine::Local);
const THERE: MarkKey = (Partition::new(Uuid::from_u128(2)), Engine::Crossplane);

/// One mark, read for this heartbeat.
fn read(found: Option<i64>) -> BTreeMap<MarkKey, Mark> {
    BTreeMap::from([(HERE, Mark::Read(found))])
}

/// With this counter of each mark.
fn locked(control: Control, counters: &[(MarkKey, i64)]) -> LockedControl {
    LockedControl { control, counters: counters.iter().copied().collect() }
}

fn counted(locked: &LockedControl, marks: &BTreeMap<MarkKey, Mark>) -> ControlCommit {
    heartbeat(locked, marks, mk_replica_report(), &mk_actor())
}

fn bare(control: Control) -> LockedControl {
    locked(control, &[])
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
    let early = counted(&bare(frozen.clone()), &read(Some(10)));
    assert!(!early.wake_all && early.audit.is_empty() && early.control.freeze.is_some());
    let over = Control { now: frozen.now.plus(FREEZE_DEFAULT), ..frozen };
    let late = counted(&bare(over), &read(Some(10)));
    assert!(late.wake_all && late.control.freeze.is_none());
    assert_eq!(late.audit[0].verb, "control.freeze_expired");
    assert!(counted(&bare(late.control), &read(None)).audit.is_empty(), "said once");
}

#[test]
fn a_counter_never_passes_a_mark_that_was_not_read_and_the_others_go_on() {
    let before = locked(mk_control(), &[(HERE, 9), (THERE, 7)]);
    let away = BTreeMap::from([(HERE, Mark::Read(Some(9))), (THERE, Mark::Unread)]);
    let commit = counted(&before, &away);
    assert_eq!(commit.control, Control { heartbeat: 11, ..mk_control() });
    assert_eq!(commit.counters, BTreeMap::from([(HERE, 11)]), "the unread one rests at 7");
    // A thousand heartbeats later that cluster is back, with a mark that a later
    // state of the database raised.
    let later = locked(Control { heartbeat: 1_010, ..mk_control() }, &[(HERE, 1_010), (THERE, 7)]);
    let back = BTreeMap::from([(HERE, Mark::Read(Some(9))), (THERE, Mark::Read(Some(12)))]);
    assert_eq!(ahead(&later, &back), Some((12, 7)));
    let commit = counted(&later, &back);
    assert!(matches!(commit.control.mode(), Mode::Observing(_)));
    assert_eq!(commit.counters, BTreeMap::from([(HERE, 1_011), (THERE, 1_011)]));
    assert_eq!(commit.claim_floor, Some(ClaimToken(1_011 << 10)));
}

/// Two pasts: the backup that is restored last counted more heartbeats than there were
/// since the restore before.
#[test]
fn a_backup_of_another_past_is_recognised() {
    let mut world = Installation::new();
    let first = (world.database.clone(), world.token);
    for _ in 0..20 {
        world.clock += 2;
        world.heartbeat([false; 2], false);
    }
    let later = (world.database.clone(), world.token);
    let restore = |world: &mut Installation, backup: &(LockedControl, [i64; 2])| {
        (world.database, world.token) = backup.clone();
        (world.compared, world.clock) = ([false; 2], world.clock + 2);
    };
    restore(&mut world, &first);
    world.heartbeat([false; 2], false);
    world.claim(1);
    world.act(0);
    world.clock += 2;
    world.heartbeat([false; 2], false);
    restore(&mut world, &later);
    assert!(world.heartbeat([false; 2], false).is_some(), "the action is newer than that backup");
}

#[test]
fn a_mark_that_nobody_has_read_yet_gets_a_counter_that_rests() {
    let unread = BTreeMap::from([(THERE, Mark::Unread)]);
    let commit = counted(&bare(mk_control()), &unread);
    assert_eq!(commit.counters, BTreeMap::from([(THERE, 10)]), "the heartbeat before this one");
    let rests = locked(commit.control, &[(THERE, 10)]);
    assert_eq!(counted(&rests, &unread).counters, BTreeMap::new());
    assert_eq!(ahead(&rests, &BTreeMap::from([(THERE, Mark::Read(Some(11)))])), Some((11, 10)));
}

#[test]
fn an_older_answer_proves_a_restore_and_overtakes_nothing() {
    let before = locked(mk_control(), &[(THERE, 7)]);
    let known = |value| BTreeMap::from([(THERE, Mark::Known(value))]);
    for harmless in [None, Some(3), Some(7)] {
        let commit = counted(&before, &known(harmless));
        assert_eq!((commit.claim_floor, commit.counters), (None, BTreeMap::new()), "{harmless:?}");
    }
    let commit = counted(&before, &known(Some(8)));
    assert!(commit.claim_floor.is_some());
    assert_eq!(commit.counters, BTreeMap::from([(THERE, 8)]), "the mark may be higher by now");
}

#[test]
fn a_mark_that_is_ahead_proves_a_restore() {
    for harmless in [None, Some(0), Some(9), Some(10)] {
        let commit = counted(&bare(mk_control()), &read(harmless));
        assert_eq!(commit.control, Control { heartbeat: 11, ..mk_control() }, "{harmless:?}");
        assert_eq!((commit.claim_floor, commit.wake_all), (None, false));
    }
    let commit = counted(&bare(mk_control()), &read(Some(11)));
    assert_eq!(
        commit.control.heartbeat, 12,
        "ahead of the high-water mark, so that it is detected once"
    );
    assert_eq!(commit.counters, BTreeMap::from([(HERE, 12)]));
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

/// An installation with two clusters, of which each may be away.
struct Installation {
    database: LockedControl,
    /// The last claim token that the rows of a cluster were given.
    token: [i64; 2],
    /// The highest token ever given, in any past of the database.
    given: i64,
    mark: [Option<i64>; 2],
    /// The highest token that an object on the cluster carries.
    object: [i64; 2],
    /// Compared since the process started; nothing is done there before.
    compared: [bool; 2],
    /// Something was done there since its mark was raised.
    acted: [bool; 2],
    /// What the marks have to reach.
    target: i64,
    /// In seconds; it goes on whatever is restored.
    clock: i64,
}

impl Installation {
    fn new() -> Self {
        Self {
            database: bare(mk_control()),
            token: [0; 2],
            given: 0,
            mark: [None; 2],
            object: [0; 2],
            compared: [false; 2],
            acted: [false; 2],
            target: 0,
            clock: 0,
        }
    }

    fn claim(&mut self, claims: i64) {
        for token in &mut self.token {
            *token += claims;
            self.given = self.given.max(*token);
        }
    }

    /// As `slipway_app::operations::control::heartbeat` does it. A crash comes
    /// after the commit, before the marks are raised. Returns the floor.
    fn heartbeat(&mut self, away: [bool; 2], crashes: bool) -> Option<ClaimToken> {
        let read = |mark: [Option<i64>; 2]| {
            let of = |at: usize| if away[at] { Mark::Unread } else { Mark::Read(mark[at]) };
            BTreeMap::from([(HERE, of(0)), (THERE, of(1))])
        };
        let here: Vec<_> = (0..2).filter(|at| !away[*at]).collect();
        self.database.control.now = at(self.clock);
        let mut marks = read(self.mark);
        if ahead(&self.database, &marks).is_some() {
            let above = counted(&self.database, &marks).control.heartbeat;
            here.iter().for_each(|at| self.mark[*at] = Some(above));
            marks = read(self.mark);
        }
        let commit = counted(&self.database, &marks);
        self.database.control = commit.control.clone();
        self.database.counters.extend(&commit.counters);
        if let Some(floor) = commit.claim_floor {
            self.token = self.token.map(|token| floor.0.max(token + 1));
            self.claim(0);
        }
        if crashes {
            self.compared = [false; 2];
            return commit.claim_floor;
        }
        if self.acted != [false; 2] || commit.claim_floor.is_some() {
            self.target = commit.control.heartbeat;
        }
        for at in here {
            self.mark[at] = self.mark[at].max(Some(self.target));
            (self.compared[at], self.acted[at]) = (true, false);
        }
        commit.claim_floor
    }

    fn act(&mut self, at: usize) {
        if self.compared[at] && self.database.control.mode() == Mode::Acting {
            let (token, object) = (self.token[at], self.object[at]);
            assert!(token > object, "the object carries {object} and refuses {token}");
            (self.object[at], self.acted[at]) = (token, true);
        }
    }
}

proptest! {
    /// However often a database is restored, to whichever backup, also to the same
    /// one twice, and whichever cluster is away meanwhile: the floor is above every
    /// claim token that was ever given, and no object refuses a claim under which
    /// something is done.
    #[test]
    fn the_claim_floor_is_above_every_token_ever_given(
        steps in proptest::collection::vec((0..9_u8, 0..200_usize, any::<[bool; 3]>()), 1..120),
    ) {
        let mut world = Installation::new();
        let mut backups = vec![(world.database.clone(), world.token)];
        for (step, amount, [left, right, crashes]) in steps {
            // 100 claims between two steps: many for 2 s.
            world.claim(100);
            world.clock += 2;
            match step {
                0..=2 => {
                    // A mark that cannot be raised after an action proves nothing, see
                    // `docs/restore.md`.
                    let away = [left && !world.acted[0], right && !world.acted[1]];
                    let given = world.given;
                    let floor = world.heartbeat(away, crashes && amount % 4 == 0);
                    if let Some(floor) = floor.filter(|_| away == [false; 2]) {
                        prop_assert!(floor.0 > given, "{:?} <= {}", floor, given);
                    }
                }
                3..=5 => world.act(amount % 2),
                6 => backups.push((world.database.clone(), world.token)),
                7 => if let Ok(commit) = resume(&world.database.control, &why(), &mk_actor()) {
                    world.database.control = commit.control;
                },
                _ => {
                    // The last heartbeat of a process that is stopped.
                    world.heartbeat([!world.acted[0], !world.acted[1]], false);
                    (world.database, world.token) = backups[amount % backups.len()].clone();
                    world.compared = [false; 2];
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
        let noticed = counted(&bare(commit.control), &read(Some(11)));
        assert!(noticed.claim_floor.unwrap() > floor);
    }
}
