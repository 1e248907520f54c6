//! Who may ask for a surge, and that exactly one attempt is in use whatever is asked for and
//! observed, in any order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::broker::attempt::StoredAttempt;
use crate::broker::decide::decide;
use crate::broker::delete;
use crate::broker::observation::CompositeReport;
use crate::broker::prepare::Read;
use crate::broker::record::{Pace, Tick, record};
use crate::broker::update::{self, Changes};
use crate::deletion::DeletionWrite;
use crate::deletion::door::Door;
use crate::fixtures::{
    at, mk_actor, mk_declare_snapshot, mk_facts, mk_node, mk_report, mk_snapshot, mk_stored_attempt,
};
use crate::ids::DrainId;
use crate::nodes::node::Node;
use crate::operations::control::Mode;

fn ask() -> Ask {
    Ask {
        deletion_id: DeletionId::new(Uuid::from_u128(500)),
        reason: Reason::parse("a new zone").unwrap(),
        expected: Expected::Any,
        grace: None,
        cascade: false,
        keep: false,
        break_glass: false,
        plan: None,
    }
}

fn allowing(mut snapshot: ResourceSnapshot) -> Doored<RedeclareSnapshot> {
    let mut declared = mk_declare_snapshot();
    declared.blueprint.as_mut().unwrap().surge = true;
    std::sync::Arc::make_mut(&mut snapshot.blueprint).surge = true;
    let of = RedeclareSnapshot { resource: snapshot, project: "default".to_owned(), declared };
    Doored { of, door: Door::default() }
}

fn surge(snapshot: &Doored<RedeclareSnapshot>) -> Result<Commit, Refusal> {
    let parameters = BTreeMap::from([("busy_seconds".to_owned(), json!(7))]);
    let corrections = Corrections { version: None, parameters };
    Ok(request(snapshot, &corrections, &ask(), &mk_actor())?.commit)
}

fn inserted(commit: &Commit) -> ProvisionedResource {
    let insert = commit.writes.iter().find_map(|write| match write {
        Write::Broker(BrokerWrite::AttemptInsert(attempt)) => Some(attempt.clone()),
        _ => None,
    });
    insert.unwrap()
}

#[test]
fn the_new_attempt_is_made_beside_the_one_in_use() {
    let snapshot = allowing(mk_snapshot(Phase::Ready));
    let commit = surge(&snapshot).unwrap();
    let next = inserted(&commit);
    assert_eq!((next.attempt(), next.is_in_use(), next.hostname()), (2, false, Some("web-1-2")));
    assert_eq!(next.parameter_values().as_map()["busy_seconds"], 7);
    assert_eq!(commit.audit[0].verb, "resource.replace");
    assert_eq!(commit.audit[0].details["surge"], true);
    let touched = |write: &Write| {
        matches!(write, Write::Broker(BrokerWrite::AttemptUpdate(_)) | Write::Deletion(_))
    };
    assert!(!commit.writes.iter().any(touched), "the one in use is left alone: {commit:?}");
}

#[test]
fn who_may_not_ask_learns_the_way_out() {
    for &phase in Phase::ALL {
        let asked = surge(&allowing(mk_snapshot(phase)));
        match phase {
            Phase::Ready => assert!(asked.is_ok()),
            phase if phase.is_deletion() => assert_eq!(asked.unwrap_err().kind, ErrorKind::Leaving),
            _ => assert_eq!(asked.unwrap_err().kind, ErrorKind::SurgeNeedsReady),
        }
    }
    // Each of the two versions can deny it.
    let mut old = allowing(mk_snapshot(Phase::Ready));
    std::sync::Arc::make_mut(&mut old.of.resource.blueprint).surge = false;
    let mut new = allowing(mk_snapshot(Phase::Ready));
    new.of.declared.blueprint.as_mut().unwrap().surge = false;
    for denied in [old, new] {
        let refusal = surge(&denied).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::SurgeNotAllowed);
        assert!(refusal.message.contains("without `--surge`"), "{refusal}");
    }
}

proptest! {
    /// A DNS label whatever the handle, and never the handle of the resource by chance.
    #[test]
    fn a_hostname_is_a_handle(text in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", number in 2..i32::MAX) {
        let handle = Handle::parse(&text).unwrap();
        for name in [
            hostname(&handle, number),
            distinct_hostname(&handle, number, ProvisionedResourceId::new(Uuid::from_u128(1 << 90))),
        ] {
            prop_assert!(Handle::parse(&name).is_ok(), "{name}");
        }
    }
}

/// The rows of one resource, changed by the commits of the rules as a store changes them.
#[derive(Debug, Clone)]
struct Slot {
    now: i64,
    resource: Resource,
    attempts: Vec<(ProvisionedResource, Option<Node>)>,
    deletions: Vec<Deletion>,
}

#[derive(Debug, Clone, Copy)]
enum Move {
    Surge,
    Abort,
    Retry,
    Delete,
    Update,
    /// A tick of the attempt with this number modulo how many there are: what it observes.
    Tick(usize, Seen),
}

#[derive(Debug, Clone, Copy)]
enum Seen {
    Absent,
    Ready,
    Failed,
    Unknown,
}

impl Slot {
    fn new() -> Self {
        let snapshot = mk_snapshot(Phase::Ready);
        let attempts = vec![(snapshot.attempt, Some(mk_node()))];
        Self { now: 1_000, resource: snapshot.resource, attempts, deletions: Vec::new() }
    }

    fn alone(&self, index: usize) -> ResourceSnapshot {
        let (attempt, node) = self.attempts[index].clone();
        let found = |id: Option<DeletionId>| {
            self.deletions.iter().find(|deletion| Some(deletion.id) == id).cloned()
        };
        let own = found(self.resource.surge.as_ref().and_then(|surge| surge.deletion_id))
            .filter(|deletion| deletion.target == attempt.id().into());
        let mut snapshot = mk_snapshot(Phase::Ready);
        std::sync::Arc::make_mut(&mut snapshot.blueprint).surge = true;
        ResourceSnapshot {
            now: at(self.now),
            deletion: own.or_else(|| found(self.resource.deletion_id)),
            resource: self.resource.clone(),
            latest: self.attempts.iter().map(|(one, _)| one.attempt()).max().unwrap(),
            attempt,
            node,
            ..snapshot
        }
    }

    fn snapshot(&self, index: usize) -> ResourceSnapshot {
        let one = self.alone(index);
        let other = self.resource.surge.as_ref().and_then(|surge| surge.other_of(one.attempt.id()));
        let other = other.map(|id| self.attempts.iter().position(|(a, _)| a.id() == id).unwrap());
        ResourceSnapshot { other: other.map(|index| Box::new(self.alone(index))), ..one }
    }

    fn current(&self) -> usize {
        let in_use =
            |(_, (attempt, _)): &(usize, &(ProvisionedResource, Option<Node>))| attempt.is_in_use();
        let last = self.attempts.iter().enumerate().filter(in_use);
        last.max_by_key(|(_, (attempt, _))| attempt.attempt()).unwrap().0
    }

    fn write(&mut self, commit: Commit) {
        for write in commit.writes {
            match write {
                Write::Broker(BrokerWrite::ResourceUpdate(resource)) => {
                    assert_eq!(resource.revision, self.resource.revision, "written once");
                    self.resource = Resource { revision: resource.revision.next(), ..resource };
                }
                Write::Broker(BrokerWrite::AttemptInsert(attempt)) => {
                    assert!(
                        self.attempts.iter().all(|(one, _)| one.attempt() != attempt.attempt())
                    );
                    self.attempts.push((attempt, None));
                }
                Write::Broker(BrokerWrite::AttemptUpdate(attempt)) => {
                    let found = self.attempts.iter_mut().find(|(one, _)| one.id() == attempt.id());
                    let (row, _) = found.unwrap();
                    assert_eq!(attempt.revision(), row.revision(), "written once");
                    *row = attempt.written();
                }
                Write::Nodes(crate::nodes::NodesWrite::NodeUpdate(node)) => {
                    let id = node.id;
                    let has = |one: &Node| one.id == id;
                    let found = self.attempts.iter_mut().map(|(_, one)| one);
                    *found.filter(|one| one.as_ref().is_some_and(has)).last().unwrap() = Some(node);
                }
                Write::Deletion(DeletionWrite::DeletionInsert(deletion)) => {
                    self.deletions.push(deletion);
                }
                Write::Deletion(DeletionWrite::DeletionUpdate(deletion)) => {
                    let found = self.deletions.iter_mut().find(|one| one.id == deletion.id);
                    *found.unwrap() = deletion;
                }
                _ => {}
            }
        }
    }

    fn ask(&mut self, made: Move, number: u128) -> Result<(), Refusal> {
        self.now += 1;
        let id = DeletionId::new(Uuid::from_u128(1_000 + number));
        let (reason, actor) = (Reason::parse("why").unwrap(), mk_actor());
        let snapshot = self.snapshot(self.current());
        let commit = match made {
            Move::Surge => surge(&allowing(snapshot))?,
            Move::Abort => abort(&snapshot, Expected::Any, id, Duration::ZERO, &reason, &actor)?,
            Move::Retry => retry::request(&snapshot, id, Duration::ZERO, &reason, &actor)?,
            Move::Delete => {
                let ask = Ask { deletion_id: id, ..ask() };
                delete::request(&snapshot, &Door::default(), &ask, &actor)?.commit
            }
            Move::Update => {
                let parameters = BTreeMap::from([("busy_seconds".to_owned(), json!(number % 9))]);
                let changes = Changes { parameters, ..Changes::default() };
                let asked = allowing(snapshot).of;
                update::update(&asked, &changes, Expected::Any, &actor)?.commit
            }
            Move::Tick(index, seen) => return self.tick(index % self.attempts.len(), seen),
        };
        self.write(commit);
        Ok(())
    }

    fn tick(&mut self, index: usize, seen: Seen) -> Result<(), Refusal> {
        let phase = self.attempts[index].0.phase();
        if phase == Phase::Enrolling && self.attempts[index].1.is_none() {
            let mut node = mk_node();
            node.id = crate::ids::NodeId::new(Uuid::from_u128(2_000 + index as u128));
            self.attempts[index].1 = Some(node);
        }
        let snapshot = self.snapshot(index);
        let report = match seen {
            Seen::Absent => CompositeReport::Absent,
            Seen::Unknown => CompositeReport::Unknown { reason: "away".to_owned() },
            Seen::Ready => mk_report(true),
            Seen::Failed => {
                let mut report = mk_report(false);
                if let CompositeReport::Present(live) = &mut report {
                    live.failure = Some("quota".to_owned());
                }
                report
            }
        };
        let decision = decide(&snapshot, &report, &mk_facts(), &Mode::Acting, snapshot.now);
        let tick = Tick {
            read: Read::of(&snapshot),
            report: &report,
            decision: &decision,
            outcome: Outcome::Done,
            drain_id: DrainId::new(Uuid::from_u128(3_000)),
            pace: Pace {
                deadlines: Default::default(),
                sweep: Duration::from_secs(30),
                lease: Duration::from_secs(30),
            },
            jitter: 0.5,
        };
        let before = self.clone();
        let commit = record(&snapshot, &tick, &Actor::new("loop:test"))?;
        self.write(commit);
        self.follows(&before);
        Ok(())
    }

    /// A tick takes nothing down but what another one replaced just now.
    fn follows(&self, before: &Self) {
        for ((was, _), (is, _)) in before.attempts.iter().zip(&self.attempts) {
            if !was.phase().is_deletion() && is.phase().is_deletion() {
                let surge = before.resource.surge.as_ref().expect("a surge");
                assert_eq!(was.id(), surge.from);
                let new = self.attempts.iter().find(|(one, _)| one.id() == surge.to).unwrap();
                assert_eq!(new.0.phase(), Phase::Ready, "before the new one is Ready");
            }
        }
    }

    fn check(&self) {
        let live: Vec<_> =
            self.attempts.iter().filter(|(one, _)| one.phase() != Phase::Deleted).collect();
        let goes = self.resource.deletion_id.is_some();
        match &self.resource.surge {
            Some(_) => assert!(live.len() == 2 || (goes && live.len() == 1), "{self:?}"),
            None => assert!(live.len() <= 1, "{self:?}"),
        }
        assert_eq!(self.resource.deleted_at.is_some(), live.is_empty(), "{self:?}");
        let shown = self.snapshot(self.current()).shown();
        let gone = shown.attempt.phase() == Phase::Deleted;
        assert_eq!(gone, live.is_empty(), "{self:?}");
        let in_use = live.iter().filter(|(one, _)| one.is_in_use()).count();
        let leaving = live.iter().filter(|(one, _)| one.phase().is_deletion()).count();
        assert!(live.is_empty() || in_use == 1 || leaving >= 1, "{self:?}");
        let open = self.deletions.iter().filter(|one| one.state == DeletionState::Running).count();
        assert_eq!(open, usize::from(leaving > 0), "one deletion is under way: {self:?}");
    }
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let seen = prop_oneof![
        4 => Just(Seen::Ready),
        3 => Just(Seen::Absent),
        1 => Just(Seen::Failed),
        1 => Just(Seen::Unknown),
    ];
    let made = prop_oneof![
        3 => Just(Move::Surge),
        1 => Just(Move::Abort),
        1 => Just(Move::Retry),
        1 => Just(Move::Delete),
        1 => Just(Move::Update),
        12 => (0..4_usize, seen).prop_map(|(index, seen)| Move::Tick(index, seen)),
    ];
    proptest::collection::vec(made, 1..60)
}

proptest! {
    #[test]
    fn exactly_one_attempt_is_in_use_and_nothing_is_left(moves in moves()) {
        let mut slot = Slot::new();
        for (number, made) in (0_u128..).zip(moves) {
            // A refusal changes nothing.
            let _refused = slot.ask(made, number);
            slot.check();
        }
        // Whatever happened, a deletion ends with nothing left.
        let _under_way = slot.ask(Move::Delete, 10_000);
        for number in 0..60_usize {
            for index in 0..slot.attempts.len() {
                if let Some(node) = &mut slot.attempts[index].1
                    && node.drain.is_some()
                    && node.is_registered()
                {
                    let snapshot = slot.snapshot(index);
                    let node = snapshot.node.clone().unwrap();
                    let how = crate::nodes::node::DeregisteredHow::Acknowledged;
                    let gone =
                        crate::nodes::drain::deregister(&node, how, None, &mk_actor(), &snapshot);
                    slot.attempts[index].1 = Some(gone.0);
                }
                let seen = if number % 2 == 0 { Seen::Ready } else { Seen::Absent };
                slot.tick(index, seen).unwrap();
                slot.check();
            }
        }
        prop_assert!(slot.resource.deleted_at.is_some(), "{slot:?}");
    }
}

#[test]
fn a_failure_beside_is_retried_beside_and_an_abort_leaves_the_one_in_use() {
    let mut slot = Slot::new();
    let in_use = slot.attempts[0].0.clone();
    slot.ask(Move::Surge, 1).unwrap();
    for _ in 0..3 {
        slot.ask(Move::Tick(1, Seen::Failed), 2).unwrap();
    }
    assert_eq!(slot.attempts[1].0.phase(), Phase::Failed);
    for refused in [Move::Surge, Move::Update] {
        assert_eq!(slot.ask(refused, 3).unwrap_err().kind, ErrorKind::SurgeUnderWay);
    }
    slot.ask(Move::Retry, 4).unwrap();
    for _ in 0..4 {
        slot.ask(Move::Tick(1, Seen::Absent), 5).unwrap();
    }
    let third = &slot.attempts[2].0;
    assert_eq!((third.attempt(), third.is_in_use()), (3, false));
    assert_eq!(third.hostname(), slot.attempts[1].0.hostname(), "the name is free again");
    slot.ask(Move::Abort, 6).unwrap();
    slot.ask(Move::Abort, 7).unwrap();
    for _ in 0..4 {
        slot.ask(Move::Tick(2, Seen::Absent), 8).unwrap();
    }
    slot.check();
    assert_eq!(slot.attempts[slot.current()].0, in_use, "as it was");
    assert_eq!(slot.ask(Move::Abort, 9).unwrap_err().kind, ErrorKind::NothingToAbort);
    // The numbers of those that never came in use stay theirs.
    slot.ask(Move::Surge, 10).unwrap();
    assert_eq!(slot.attempts[3].0.attempt(), 4);
}

/// What the mode withholds is made up for when it ends.
#[test]
fn a_frozen_installation_takes_nothing_over() {
    let mut slot = Slot::new();
    slot.ask(Move::Surge, 1).unwrap();
    let mut new = slot.alone(1);
    new.attempt = ProvisionedResource::hydrate(StoredAttempt {
        id: new.attempt.id(),
        attempt: 2,
        in_use: false,
        hostname: new.attempt.hostname().map(str::to_owned),
        ..mk_stored_attempt(Phase::Ready)
    })
    .unwrap();
    assert!(is_due(&new, Phase::Ready));
    let withheld = crate::fixtures::mk_frozen().withholds("take over").unwrap();
    assert!(!takes_over(&new, Phase::Ready, &withheld));
    assert!(takes_over(&new, Phase::Ready, &Outcome::Done));
}
