//! What may be abandoned, what it leaves behind, and what never follows from it.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::blocker::Blocker;
use crate::broker::decide::{Effect, decide};
use crate::broker::prepare::Read;
use crate::broker::record::{Pace, Tick, record};
use crate::commit::Recheck;
use crate::deletion::record::Deletion;
use crate::fixtures::{
    at, mk_actor, mk_deletion, mk_facts, mk_frozen, mk_node, mk_report, mk_snapshot, mk_token,
};
use crate::ids::DrainId;
use crate::time::Timestamp;

const WITHIN: Duration = Duration::from_secs(60);

fn unknown() -> CompositeReport {
    CompositeReport::Unknown { reason: "connection refused".to_owned() }
}

fn foreign() -> CompositeReport {
    CompositeReport::Foreign { reason: "it is of another installation".to_owned() }
}

fn blocked_by(code: BlockerCode) -> Blocker {
    Blocker {
        code,
        message: "the substrate could not be read".to_owned(),
        since: at(950),
        evidence: Value::Null,
        next_retry_at: None,
    }
}

/// A resource whose deletion the loop cannot continue.
fn stuck(phase: Phase) -> ResourceSnapshot {
    let mut snapshot = mk_snapshot(phase);
    if phase.is_deletion() {
        let deletion = mk_deletion(&snapshot);
        snapshot.resource.deletion_id = Some(deletion.id);
        snapshot.deletion = Some(deletion);
    }
    if phase == Phase::Deleted {
        snapshot.resource.deleted_at = Some(at(900));
    }
    snapshot.blockers.push(blocked_by(BlockerCode::SubstrateUnknown));
    snapshot
}

fn ask(snapshot: &ResourceSnapshot, report: Option<&CompositeReport>) -> Result<Commit, Refusal> {
    ask_in(snapshot, report, &Mode::Acting)
}

fn ask_in(
    snapshot: &ResourceSnapshot,
    report: Option<&CompositeReport>,
    mode: &Mode,
) -> Result<Commit, Refusal> {
    let reason = Reason::parse("the cluster burnt down").unwrap();
    let asked = Request { reason: &reason, confirm: "web-1" };
    let deadlines = Deadlines::default();
    let circumstances =
        Circumstances { report, mode, deadlines: &deadlines, claimed_within: WITHIN };
    request(snapshot, asked, circumstances, &mk_actor())
}

fn leaks_of(commit: &Commit) -> Vec<&LeakRecord> {
    let leak = |write| match write {
        &Write::Deletion(DeletionWrite::LeakInsert(ref leak)) => Some(leak),
        _ => None,
    };
    commit.writes.iter().filter_map(leak).collect()
}

#[test]
fn only_a_requested_deletion_that_cannot_go_on_is_abandoned() {
    for &phase in Phase::ALL {
        let asked = ask(&stuck(phase), Some(&unknown()));
        assert_eq!(asked.is_ok(), phase.is_deletion(), "{phase}");
        if let Err(refusal) = asked {
            assert_eq!(refusal.kind, ErrorKind::NotAbandonable);
            assert!(refusal.message.contains("slipway resource delete"), "{refusal}");
        }
    }
}

#[test]
fn the_handle_is_typed_once_more() {
    let reason = Reason::parse("why").unwrap();
    let asked = Request { reason: &reason, confirm: "web-2" };
    let deadlines = Deadlines::default();
    let circumstances = Circumstances {
        report: None,
        mode: &Mode::Acting,
        deadlines: &deadlines,
        claimed_within: WITHIN,
    };
    let refusal =
        request(&stuck(Phase::Deprovisioning), asked, circumstances, &mk_actor()).unwrap_err();
    assert_eq!(
        (refusal.kind, refusal.field.as_deref()),
        (ErrorKind::InvalidInput, Some("confirm"))
    );
}

#[test]
fn a_retry_becomes_a_deletion_first() {
    let mut snapshot = stuck(Phase::Deprovisioning);
    let target = snapshot.attempt.id().into();
    snapshot.deletion = Some(Deletion { target, ..mk_deletion(&snapshot) });
    let refusal = ask(&snapshot, Some(&unknown())).unwrap_err();
    assert!(refusal.message.contains("slipway resource delete"), "{refusal}");
    let mut older = stuck(Phase::Deleted);
    older.resource.deleted_at = None;
    let refusal = ask(&older, Some(&unknown())).unwrap_err();
    assert!(refusal.message.contains("slipway resource delete"), "{refusal}");
}

/// One failed request is no ground, and neither is an old blocker.
#[test]
fn both_observations_have_to_fail() {
    let snapshot = stuck(Phase::Deprovisioning);
    for report in [unknown(), foreign()] {
        assert!(ask(&snapshot, Some(&report)).is_ok());
        let mut unrecorded = snapshot.clone();
        unrecorded.blockers.clear();
        let refusal = ask(&unrecorded, Some(&report)).unwrap_err();
        assert!(refusal.message.contains("substrate_unknown"), "{refusal}");
    }
    for report in [mk_report(true), CompositeReport::Absent] {
        assert!(ask(&snapshot, Some(&report)).is_err(), "{report:?}");
    }
}

#[test]
fn what_nobody_serves_cannot_be_read() {
    let mut snapshot = stuck(Phase::Deprovisioning);
    assert!(ask(&snapshot, None).is_ok(), "the loop of another replica said so");
    snapshot.blockers.clear();
    // A request to delete makes the row due at once, and nobody had the time to claim it.
    snapshot.due_at = Some(snapshot.now);
    let from = snapshot.now.plus(WITHIN).to_string();
    for phase in [Phase::Deregistering, Phase::Deprovisioning, Phase::Deleted] {
        let mut fresh = stuck(phase);
        fresh.blockers.clear();
        fresh.due_at = snapshot.due_at;
        for mode in [Mode::Acting, mk_frozen()] {
            let refusal = ask_in(&fresh, None, &mode).unwrap_err();
            assert!(refusal.message.contains(&from), "{refusal}");
            assert!(!refusal.message.contains("can be read"), "{refusal}");
        }
    }
    snapshot.due_at = Some(at(900));
    assert!(ask(&snapshot, None).is_ok());
    assert!(ask(&snapshot, Some(&mk_report(false))).is_err(), "it can be read here");
}

#[test]
fn what_can_be_read_is_abandoned_only_when_it_is_overdue() {
    let mut snapshot = stuck(Phase::Deprovisioning);
    snapshot.blockers = vec![blocked_by(BlockerCode::DeprovisioningOverdue)];
    let present = mk_report(false);
    assert!(ask(&snapshot, Some(&present)).unwrap_err().message.contains("not overdue"));
    snapshot.now = at(900).plus(Deadlines::default().deprovisioning);
    assert!(ask(&snapshot, Some(&present)).is_ok());
    assert!(ask(&snapshot, None).is_ok(), "another replica reads it");
    let frozen = ask_in(&snapshot, Some(&present), &mk_frozen()).unwrap_err();
    assert!(frozen.message.contains("frozen"), "{frozen}");
    let absent = ask(&snapshot, Some(&CompositeReport::Absent)).unwrap_err();
    assert!(absent.message.contains("by itself"), "{absent}");
    snapshot.node = Some(mk_node());
    let draining = ask(&snapshot, Some(&present)).unwrap_err();
    assert!(draining.message.contains("force-drain"), "{draining}");
}

/// A person's write to the registry, which touches nothing outside.
#[test]
fn every_mode_lets_a_person_abandon_what_cannot_be_read() {
    assert!(ask_in(&stuck(Phase::Deregistering), Some(&unknown()), &mk_frozen()).is_ok());
}

#[test]
fn the_records_name_where_it_was() {
    let mut snapshot = stuck(Phase::Deregistering);
    snapshot.node = Some(mk_node());
    snapshot.observed = Some(json!({ "composite": "unknown", "last_uid": "uid-7" }));
    let commit = ask(&snapshot, Some(&unknown())).unwrap();
    let [composite, node] = leaks_of(&commit)[..] else { panic!("{commit:?}") };
    let known = composite.last_known.clone().unwrap();
    assert_eq!(composite.kind, "abandoned_composite");
    assert_eq!(known.cluster.as_deref(), Some("local"));
    assert_eq!(known.uid.as_deref(), Some("uid-7"));
    let object_ref = known.object_ref.unwrap();
    assert_eq!(object_ref.namespace, "slipway-project-x");
    assert_eq!(object_ref.name, snapshot.attempt.xr_name());
    assert_eq!((node.kind, &node.evidence["hostname"]), ("abandoned_node", &json!("web-1")));
    let entry = commit.audit.iter().find(|entry| entry.verb == ABANDON).unwrap();
    assert_eq!(entry.details["abandoned"], true);
    assert_eq!(entry.details["ground"], "connection refused");
    assert_eq!(entry.reason.as_deref(), Some("the cluster burnt down"));
    assert_eq!(entry.details["leak_record_ids"].as_array().unwrap().len(), 2);
}

/// The uid outlives the observation that showed it.
#[test]
fn an_unreadable_object_keeps_its_uid_in_the_row() {
    let mut snapshot = stuck(Phase::Deprovisioning);
    snapshot.observed = Some(json!({ "uid": "uid-7" }));
    for _ in 0..2 {
        let commit = tick(&snapshot, &unknown());
        let seen = commit.writes.iter().find_map(|write| match write {
            Write::Broker(BrokerWrite::ObservedReplace(_, seen)) => Some(seen.clone()),
            _ => None,
        });
        snapshot.observed = seen.or(snapshot.observed);
        assert_eq!(last_uid(&snapshot), Some("uid-7"));
    }
}

fn tick(snapshot: &ResourceSnapshot, report: &CompositeReport) -> Commit {
    let decision = decide(snapshot, report, &mk_facts(), &Mode::Acting, snapshot.now);
    assert!(!matches!(decision.effect, Effect::Apply(_)), "{decision:?}");
    let Effect::None(outcome) = decision.effect.clone() else {
        panic!("{decision:?}");
    };
    let tick = Tick {
        read: Read::of(snapshot),
        report,
        decision: &decision,
        outcome,
        drain_id: DrainId::new(uuid::Uuid::from_u128(600)),
        pace: Pace {
            deadlines: Deadlines::default(),
            sweep: Duration::from_secs(30),
            lease: Duration::from_secs(30),
        },
        jitter: 0.5,
    };
    record(snapshot, &tick, &mk_actor()).unwrap()
}

/// Deleted is sticky: the loop asks for nothing, shows nothing and concludes nothing from
/// what it still cannot read.
#[test]
fn an_abandoned_attempt_waits_for_nothing() {
    let snapshot = stuck(Phase::Deprovisioning);
    let mut gone = snapshot.after(&ask(&snapshot, Some(&unknown())).unwrap());
    gone.blockers.clear();
    gone.now = at(50_000);
    for report in [unknown(), foreign()] {
        let commit = tick(&gone, &report);
        assert!(!commit.writes.iter().any(|write| matches!(write, Write::BlockersReplace(..))));
        assert!(commit.events.is_empty());
    }
    let commit = tick(&gone, &unknown());
    let rechecks = commit.writes.iter().filter_map(|write| match write {
        Write::Release(release) => Some(release.recheck),
        _ => None,
    });
    assert_eq!(rechecks.collect::<Vec<_>>(), [Recheck::Never]);
}

fn reports() -> impl Strategy<Value = Option<CompositeReport>> {
    proptest::sample::select(vec![
        None,
        Some(unknown()),
        Some(foreign()),
        Some(CompositeReport::Absent),
        Some(mk_report(true)),
        Some(mk_report(false)),
    ])
}

proptest! {
    /// Whatever the circumstances: nothing abandoned is ever said to be proven gone,
    /// everything that may still exist has a record, nothing that it could use to come
    /// back stays valid, and to ask again changes nothing.
    #[test]
    fn nothing_abandoned_is_said_to_be_proven_gone(
        phase in proptest::sample::select(Phase::ALL.to_vec()),
        report in reports(),
        recorded: bool,
        registered: bool,
        unused: bool,
        placed: bool,
        frozen: bool,
        now in 1_000_i64..10_000,
        due in proptest::option::of(0_i64..10_000),
    ) {
        let mut snapshot = stuck(phase);
        snapshot.now = at(now);
        snapshot.due_at = due.map(at);
        if !recorded { snapshot.blockers.clear(); }
        if registered { snapshot.node = Some(mk_node()); }
        if unused { snapshot.token = Some(mk_token(1_000, 1_100, 2_000)); }
        if !placed { snapshot.placement = None; }
        let mode = if frozen { mk_frozen() } else { Mode::Acting };
        let asked = ask_in(&snapshot, report.as_ref(), &mode);
        let Ok(commit) = asked else { return Ok(()); };

        prop_assert!(phase.is_deletion());
        prop_assert!(!matches!(report, Some(CompositeReport::Absent)));
        let after = snapshot.after(&commit);
        prop_assert_eq!(after.attempt.phase(), Phase::Deleted);
        prop_assert_eq!(after.attempt.absence_proven_at(), None);
        prop_assert_eq!(after.attempt.abandoned_at(), Some(snapshot.now));
        let proves = |write: &Write| matches!(write, Write::Deletion(DeletionWrite::LeaksResolve(_)));
        prop_assert!(!commit.writes.iter().any(proves));
        let kinds: Vec<_> = leaks_of(&commit).iter().map(|leak| leak.kind).collect();
        let expected: &[&str] =
            if registered { &["abandoned_composite", "abandoned_node"] } else { &["abandoned_composite"] };
        prop_assert_eq!(kinds, expected);
        prop_assert!(after.node.as_ref().is_none_or(|node| !node.is_registered()));
        prop_assert!(after.node.as_ref().is_none_or(|node| node.key_hash.is_none()));
        let revoked = |at: Option<Timestamp>| at == Some(snapshot.now);
        let token = commit.writes.iter().find_map(|write| match write {
            Write::Nodes(NodesWrite::TokenUpdate(token)) => Some(token.revoked_at),
            _ => None,
        });
        prop_assert_eq!(token.is_some_and(revoked), unused);
        // Deleted was announced when it was first proven.
        let of_attempt = commit.events.iter().filter(|event| event.subject == after.attempt.id().into());
        let announced = of_attempt.map(|event| (event.event_type, event.abandoned));
        let expected = if phase == Phase::Deleted { vec![] } else { vec![(event::DELETED, true)] };
        prop_assert_eq!(announced.collect::<Vec<_>>(), expected);
        prop_assert!(commit.audit.iter().any(|entry| entry.verb == ABANDON));
        prop_assert!(ask_in(&after, report.as_ref(), &mode).unwrap().is_empty());
    }
}
