//! Tests of the record of a tick.

use std::sync::Arc;

use crate::broker::BrokerWrite;
use crate::deletion::DeletionWrite;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::broker::decide::{Effect, Obstacle};
use crate::error::ErrorKind;
use crate::fixtures::{at, mk_actor, mk_facts, mk_frozen, mk_node, mk_report, mk_snapshot};
use crate::ids::DeletionId;
use crate::nodes::node::Drain;
use crate::operations::control::Mode;

const SWEEP: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(20);

fn decided(snapshot: &ResourceSnapshot, report: &CompositeReport) -> Decision {
    decide::decide(snapshot, report, &mk_facts(), &Mode::Acting, snapshot.now)
}

fn tick<'a>(
    snapshot: &ResourceSnapshot,
    report: &'a CompositeReport,
    decision: &'a Decision,
) -> Tick<'a> {
    Tick {
        read: Read::of(snapshot),
        report,
        decision,
        outcome: Outcome::Done,
        drain_id: DrainId::new(Uuid::from_u128(600)),
        pace: Pace { deadlines: Deadlines::default(), sweep: SWEEP, lease: LEASE },
        jitter: 0.5,
    }
}

fn run(snapshot: &ResourceSnapshot, report: &CompositeReport) -> Commit {
    let decision = decided(snapshot, report);
    record(snapshot, &tick(snapshot, report, &decision), &mk_actor()).unwrap()
}

fn release(commit: &Commit) -> Release {
    commit
        .writes
        .iter()
        .find_map(|write| match write {
            Write::Release(release) => Some(*release),
            _ => None,
        })
        .unwrap()
}

fn blockers(commit: &Commit) -> Vec<Blocker> {
    commit
        .writes
        .iter()
        .find_map(|write| match write {
            Write::BlockersReplace(_, blockers) => Some(blockers.clone()),
            _ => None,
        })
        .unwrap_or_default()
}

#[test]
fn a_transition_to_ready_announces_it_once() {
    let mut snapshot = mk_snapshot(Phase::Enrolling);
    snapshot.node = Some(mk_node());
    let commit = run(&snapshot, &mk_report(true));
    assert_eq!(commit.events.len(), 1);
    assert_eq!(commit.events[0].event_type, event::READY);
    assert_eq!(commit.events[0].revision, snapshot.attempt.revision().next());
    let sweep = Recheck::After(Duration::from_secs(30));
    assert_eq!(release(&commit).recheck, sweep, "nothing is left to be done in Ready");

    let mut ready = mk_snapshot(Phase::Ready);
    ready.node = Some(mk_node());
    let commit = run(&ready, &mk_report(true));
    assert!(commit.events.is_empty(), "an unchanged phase announces nothing");
}

/// One fact, written once: the audit has what is announced, the history the rest.
#[test]
fn a_transition_is_in_the_audit_if_announced_and_in_the_history_if_not() {
    for (phase, ready, to) in
        [(Phase::Pending, false, Phase::Provisioning), (Phase::Enrolling, true, Phase::Ready)]
    {
        let mut snapshot = mk_snapshot(phase);
        snapshot.node = (to == Phase::Ready).then(mk_node);
        let commit = run(&snapshot, &mk_report(ready));
        let [change] = &commit.state_changes().collect::<Vec<_>>()[..] else {
            panic!("{commit:?}")
        };
        assert_eq!((change.from, change.to), (Some(phase.as_str()), to.as_str()));
        assert_eq!(change.revision, snapshot.attempt.revision().next());
        let quiet = commit.writes.iter().any(|write| matches!(write, Write::HistoryAppend(_)));
        assert_eq!(quiet, event::of_transition(to).is_none(), "{to}");
        assert_eq!((commit.events.is_empty(), commit.audit.is_empty()), (quiet, quiet), "{to}");
    }
}

#[test]
fn an_unchanged_world_only_gives_the_claim_back() {
    let mut snapshot = mk_snapshot(Phase::Ready);
    snapshot.node = Some(mk_node());
    let report = mk_report(true);
    for write in run(&snapshot, &report).writes {
        if let Write::Broker(BrokerWrite::ObservedReplace(_, seen)) = write {
            snapshot.observed = Some(seen);
        }
    }
    let commit = run(&snapshot, &report);
    let release = commit.only_release().expect("nothing else to write");
    assert_eq!(release.recheck, Recheck::After(Duration::from_secs(30)));
}

#[test]
fn an_observation_has_a_time_and_says_if_nobody_checks_it() {
    let mut snapshot = mk_snapshot(Phase::Ready);
    snapshot.node = Some(mk_node());
    let within = Duration::from_secs(60);
    let seen = |snapshot: &ResourceSnapshot, ready| {
        let mut writes = run(snapshot, &mk_report(ready)).writes.into_iter();
        writes.find_map(|write| match write {
            Write::Broker(BrokerWrite::ObservedReplace(_, seen)) => Some(seen),
            _ => None,
        })
    };
    assert!(!snapshot.observed_stale(within), "nothing was observed yet");
    snapshot.observed = seen(&snapshot, true);
    let first = snapshot.now;
    assert_eq!(snapshot.observed_since(), Some(first));
    snapshot.now = first.plus(Duration::from_secs(600));
    assert_eq!(seen(&snapshot, true), None, "it is the same since then");
    for (due_at, is_stale) in [(Some(snapshot.now), false), (Some(first), true), (None, true)] {
        snapshot.due_at = due_at;
        assert_eq!(snapshot.observed_stale(within), is_stale, "{due_at:?}");
    }
    snapshot.observed = seen(&snapshot, false);
    assert_eq!(snapshot.observed_since(), Some(snapshot.now), "something changed");
}

#[test]
fn the_reason_of_a_failure_is_kept_and_announced() {
    let snapshot = mk_snapshot(Phase::Provisioning);
    let mut report = mk_report(false);
    if let CompositeReport::Present(live) = &mut report {
        live.failure = Some("quota exceeded".to_owned());
    }
    let commit = run(&snapshot, &report);
    assert_eq!(commit.events[0].event_type, event::FAILED);
    assert_eq!(commit.events[0].payload["Reason"], "quota exceeded");
    assert_eq!(release(&commit).recheck, Recheck::Never);
}

#[test]
fn reaching_deleted_ends_the_deletion_and_frees_the_handle() {
    let mut snapshot = mk_snapshot(Phase::Deprovisioning);
    let deletion = crate::fixtures::mk_deletion(&snapshot);
    snapshot.resource.deletion_id = Some(deletion.id);
    snapshot.deletion = Some(deletion);
    let commit = run(&snapshot, &CompositeReport::Absent);
    assert_eq!(commit.events[0].event_type, event::DELETED);
    assert!(commit.writes.iter().any(
        |write| matches!(write, Write::Broker(BrokerWrite::ResourceUpdate(resource)) if resource.deleted_at.is_some())
    ));
    assert!(commit.writes.iter().any(|write| matches!(write, Write::Deletion(DeletionWrite::DeletionUpdate(deletion)) if deletion.state.as_str() == "done" && deletion.restorable_until.is_some())));
    assert_ne!(snapshot.resource.deletion_id, Some(DeletionId::new(Uuid::nil())));
    assert_eq!(release(&commit).recheck, Recheck::After(LEASE), "its absence is proven again");
}

/// History and blockers of a resource whose agent dies again and again.
#[test]
fn flapping_is_a_blocker_of_its_own() {
    let mut snapshot = mk_snapshot(Phase::Ready);
    snapshot.attempt = snapshot.attempt.unsettled(at(850));
    let mut node = mk_node();
    node.last_heartbeat_at = Some(at(1_000));
    snapshot.node = Some(node);
    snapshot.now = at(1_160);
    let left = run(&snapshot, &mk_report(false));
    let attempt = left.writes.iter().find_map(|write| match write {
        Write::Broker(BrokerWrite::AttemptUpdate(attempt)) => Some(attempt.clone()),
        _ => None,
    });
    snapshot.attempt = attempt.unwrap();
    assert_eq!(snapshot.attempt.unsettled_since(), at(850), "Ready was too short");
    snapshot.now = at(850 + 35 * 60);
    let codes: Vec<_> =
        blockers(&run(&snapshot, &mk_report(false))).iter().map(|found| found.code).collect();
    assert_eq!(codes, [BlockerCode::Unsettled]);
}

#[test]
fn a_retried_attempt_is_followed_by_another() {
    let mut snapshot = mk_snapshot(Phase::Deprovisioning);
    let deletion = Deletion {
        target: snapshot.attempt.id().into(),
        ..crate::fixtures::mk_deletion(&snapshot)
    };
    snapshot.resource.deletion_id = Some(deletion.id);
    snapshot.deletion = Some(deletion);
    let commit = run(&snapshot, &CompositeReport::Absent);
    let next = commit
        .writes
        .iter()
        .find_map(|write| match write {
            Write::Broker(BrokerWrite::AttemptInsert(next)) => Some(next.clone()),
            _ => None,
        })
        .unwrap();
    assert_eq!((next.attempt(), next.phase()), (2, Phase::Pending));
    assert_eq!(next.resource_id(), snapshot.resource.id);
    assert_eq!(commit.wakes, [next.id().into()]);
    let followed = commit.audit.iter().find(|entry| entry.subject == next.id().into());
    assert_eq!(followed.unwrap().verb, "provisioned_resource.follow");
    let kinds: Vec<_> = commit.events.iter().map(|event| event.event_type).collect();
    assert_eq!(kinds, [event::DELETED, crate::deletion::event::DONE, event::REQUESTED]);
    assert!(
        commit
            .writes
            .iter()
            .any(|write| matches!(write, Write::Broker(BrokerWrite::ResourceUpdate(resource))
        if resource.deleted_at.is_none() && resource.deletion_id.is_none()))
    );
}

/// Invariant 16: the deadline raises a blocker that names node and deadline,
/// and the phase stays.
#[test]
fn a_missed_deadline_raises_a_blocker_and_never_changes_the_phase() {
    let mut snapshot = mk_snapshot(Phase::Deregistering);
    snapshot.node = Some(mk_node());
    let deadline = snapshot.attempt.phase_since().plus(Duration::from_secs(600));
    snapshot.now = Timestamp::from_micros(deadline.as_micros() - 1);
    assert!(blockers(&run(&snapshot, &mk_report(true))).is_empty());

    snapshot.now = deadline;
    let commit = run(&snapshot, &mk_report(true));
    let raised = blockers(&commit);
    assert_eq!(raised[0].code, BlockerCode::NodeNotDraining);
    assert!(raised[0].message.contains(&snapshot.node.as_ref().unwrap().id.to_string()));
    assert!(raised[0].message.contains(&deadline.to_string()));
    assert!(
        !commit
            .writes
            .iter()
            .any(|write| matches!(write, Write::Broker(BrokerWrite::AttemptUpdate(_))))
    );
}

#[test]
fn a_node_that_never_reports_raises_a_blocker_until_it_does() {
    let mut snapshot = mk_snapshot(Phase::Ready);
    let mut node = mk_node();
    let deadline = node.registered_at.plus(Duration::from_secs(300));
    snapshot.node = Some(node.clone());
    let codes = |snapshot: &ResourceSnapshot| {
        let commit = run(snapshot, &mk_report(true));
        blockers(&commit).iter().map(|blocker| blocker.code).collect::<Vec<_>>()
    };
    snapshot.now = Timestamp::from_micros(deadline.as_micros() - 1);
    assert_eq!(codes(&snapshot), []);
    snapshot.now = deadline;
    assert_eq!(codes(&snapshot), [BlockerCode::NodeSilent]);
    // A drain has a deadline of its own.
    let leaving =
        ResourceSnapshot { node: Some(node.clone()), ..mk_snapshot(Phase::Deregistering) };
    assert!(!codes(&leaving).contains(&BlockerCode::NodeSilent));
    node.last_heartbeat_at = Some(deadline);
    snapshot.node = Some(node);
    assert_eq!(codes(&snapshot), []);
}

/// Nothing but a person ends this wait, so no deadline does either.
#[test]
fn a_machine_that_people_booted_waits_for_their_word() {
    let mut snapshot = mk_snapshot(Phase::Deprovisioning);
    Arc::make_mut(&mut snapshot.blueprint).engine = Engine::Manual;
    snapshot.now = snapshot.attempt.phase_since().plus(Duration::from_secs(86_400));
    let codes = |report: &CompositeReport| {
        let commit = run(&snapshot, report);
        blockers(&commit).iter().map(|blocker| blocker.code).collect::<Vec<_>>()
    };
    let CompositeReport::Present(mut live) = mk_report(true) else { panic!("present") };
    live.terminating = true;
    let leaving = CompositeReport::Present(live);
    assert_eq!(codes(&leaving), [BlockerCode::MachineNotConfirmedGone]);
    assert_eq!(codes(&CompositeReport::Absent), []);
}

/// A mode that does not act withholds the drain. Nobody asked the node to drain, so
/// only the mode explains the wait. A drain that was requested before is overdue in any
/// mode.
#[test]
fn a_withheld_drain_does_not_blame_the_node() {
    let mut snapshot = mk_snapshot(Phase::Deregistering);
    snapshot.now = snapshot.attempt.phase_since().plus(Duration::from_secs(3_600));
    let mut node = mk_node();
    snapshot.node = Some(node.clone());
    let codes = |snapshot: &ResourceSnapshot| {
        let report = mk_report(true);
        let decision = decide::decide(snapshot, &report, &mk_facts(), &mk_frozen(), snapshot.now);
        let Effect::None(outcome) = decision.effect.clone() else { panic!("{decision:?}") };
        let tick = Tick { outcome, ..tick(snapshot, &report, &decision) };
        let commit = record(snapshot, &tick, &mk_actor()).unwrap();
        blockers(&commit).iter().map(|blocker| blocker.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(&snapshot), [BlockerCode::Frozen]);

    let id = DrainId::new(Uuid::from_u128(600));
    node.drain = Some(Drain { id, requested_at: snapshot.attempt.phase_since() });
    snapshot.node = Some(node);
    assert_eq!(codes(&snapshot), [BlockerCode::NodeNotDraining]);
}

/// The node is drained and the substrate cannot be read: force would not help.
#[test]
fn an_overdue_teardown_without_a_node_does_not_blame_the_node() {
    let mut snapshot = mk_snapshot(Phase::Deregistering);
    snapshot.now = snapshot.attempt.phase_since().plus(Duration::from_secs(3_600));
    let report = CompositeReport::Unknown { reason: "refused\0".to_owned() };
    let raised = blockers(&run(&snapshot, &report));
    let codes: Vec<_> = raised.iter().map(|blocker| blocker.code).collect();
    assert_eq!(codes, [BlockerCode::SubstrateUnknown, BlockerCode::DeprovisioningOverdue]);
    assert!(!raised[0].message.contains('\0'));
}

/// The database may return them in another order; nothing is rewritten.
#[test]
fn blockers_that_stay_are_not_written_again() {
    let mut snapshot = mk_snapshot(Phase::Deregistering);
    snapshot.now = snapshot.attempt.phase_since().plus(Duration::from_secs(3_600));
    let report = CompositeReport::Unknown { reason: "refused".to_owned() };
    for write in run(&snapshot, &report).writes {
        match write {
            Write::Broker(BrokerWrite::ObservedReplace(_, seen)) => snapshot.observed = Some(seen),
            Write::BlockersReplace(_, mut raised) => {
                raised.reverse();
                snapshot.blockers = raised;
            }
            _ => {}
        }
    }
    assert_eq!(snapshot.blockers.len(), 2);
    assert!(run(&snapshot, &report).only_release().is_some());
}

/// Invariant 3.
#[test]
fn an_unknown_substrate_is_a_blocker_and_not_an_absence() {
    for phase in [Phase::Provisioning, Phase::Ready, Phase::Deprovisioning] {
        let snapshot = mk_snapshot(phase);
        let report = CompositeReport::Unknown { reason: "connection refused".to_owned() };
        let commit = run(&snapshot, &report);
        assert_eq!(blockers(&commit)[0].code, BlockerCode::SubstrateUnknown);
        assert!(commit.events.is_empty());
        assert!(
            !commit
                .writes
                .iter()
                .any(|write| matches!(write, Write::Broker(BrokerWrite::AttemptUpdate(_))))
        );
    }
}

#[test]
fn a_failed_action_backs_off_and_is_shown() {
    let mut snapshot = mk_snapshot(Phase::Provisioning);
    let report = mk_report(false);
    let decision = decided(&snapshot, &report);
    let mut delays = Vec::new();
    for failures in [0, 1, 2, 20] {
        snapshot.failures = failures;
        let failed = Tick {
            outcome: Outcome::Failed(Obstacle::new(BlockerCode::ApplyFailed, "disk full")),
            ..tick(&snapshot, &report, &decision)
        };
        let commit = record(&snapshot, &failed, &mk_actor()).unwrap();
        assert_eq!(blockers(&commit)[0].code, BlockerCode::ApplyFailed);
        delays.push(release(&commit).recheck);
    }
    let after = |millis| Recheck::After(Duration::from_millis(millis));
    assert_eq!(delays, [after(250), after(500), after(1_000), after(30_000)]);
}

/// Invariant 6. What was sent may still arrive, and the next tick must not decide before.
#[test]
fn an_action_without_an_answer_is_shown_and_keeps_its_claim() {
    let snapshot = mk_snapshot(Phase::Provisioning);
    let report = mk_report(false);
    let decision = decided(&snapshot, &report);
    let silent = Tick {
        outcome: Outcome::Unanswered(Obstacle::new(BlockerCode::ApplyFailed, "no answer")),
        ..tick(&snapshot, &report, &decision)
    };
    let commit = record(&snapshot, &silent, &mk_actor()).unwrap();
    assert_eq!(blockers(&commit)[0].code, BlockerCode::ApplyFailed);
    assert_eq!(blockers(&commit)[0].next_retry_at, Some(snapshot.now.plus(LEASE)));
    assert!(!commit.writes.iter().any(|write| matches!(write, Write::Release(_))), "{commit:?}");
}

/// Invariant 6.
#[test]
fn a_tick_whose_claim_was_lost_writes_nothing() {
    let snapshot = mk_snapshot(Phase::Pending);
    let decision = decided(&snapshot, &CompositeReport::Absent);
    let mut late = tick(&snapshot, &CompositeReport::Absent, &decision);
    late.read.claim_token = ClaimToken(late.read.claim_token.0 - 1);
    assert!(record(&snapshot, &late, &mk_actor()).is_err());
}

#[test]
fn a_wait_is_polled_soon_at_first_and_rarely_later() {
    let mut snapshot = mk_snapshot(Phase::Provisioning);
    let report = mk_report(false);
    let since = snapshot.attempt.phase_since();
    let mut previous = Duration::ZERO;
    for waited in [0, 1, 10, 60, 3_600] {
        snapshot.now = since.plus(Duration::from_secs(waited));
        let Recheck::After(delay) = release(&run(&snapshot, &report)).recheck else { panic!() };
        assert!(delay >= previous && delay <= Duration::from_secs(30), "{waited}s: {delay:?}");
        previous = delay;
    }
    assert_eq!(previous, Duration::from_secs(30));
    assert!(at(1) > Timestamp::ZERO);
}

/// A resource whose action is withheld is still observed, and costs no write if
/// nothing changed. Only the end of the mode helps, so its age sets no poll interval.
#[test]
fn what_a_mode_withholds_is_observed_rarely_and_written_once() {
    let mut snapshot = mk_snapshot(Phase::Pending);
    snapshot.now = snapshot.attempt.phase_since();
    let report = CompositeReport::Absent;
    let withheld = |snapshot: &ResourceSnapshot, mode: &Mode| {
        let decision = decide::decide(snapshot, &report, &mk_facts(), mode, snapshot.now);
        let Effect::None(outcome) = decision.effect.clone() else { panic!("{decision:?}") };
        let tick = Tick { outcome, ..tick(snapshot, &report, &decision) };
        record(snapshot, &tick, &mk_actor()).unwrap()
    };
    let first = withheld(&snapshot, &mk_frozen());
    assert_eq!(blockers(&first)[0].code, BlockerCode::Frozen);
    assert_eq!(release(&first).recheck, Recheck::After(SWEEP), "not an eighth of its age");
    snapshot.blockers = blockers(&first);
    for write in first.writes {
        if let Write::Broker(BrokerWrite::ObservedReplace(_, seen)) = write {
            snapshot.observed = Some(seen);
        }
    }
    for minutes in [1, 2, 4] {
        snapshot.now = snapshot.attempt.phase_since().plus(Duration::from_secs(minutes * 60));
        let again = withheld(&snapshot, &mk_frozen()).only_release().expect("nothing changed");
        assert_eq!(again.recheck, Recheck::After(SWEEP * WITHHELD_SWEEPS));
    }
    // Another reason for the freeze is a change.
    let Mode::Frozen(mut freeze) = mk_frozen() else { panic!() };
    freeze.reason = "another".to_owned();
    let news = withheld(&snapshot, &Mode::Frozen(freeze));
    assert_eq!(release(&news).recheck, Recheck::After(SWEEP));
    assert!(news.only_release().is_none());
}

fn parts(commit: &Commit) -> (&[Blocker], Release) {
    match &commit.writes[..] {
        [Write::BlockersReplace(_, blockers), Write::Release(release)] => (blockers, *release),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fault_is_shown_beside_what_was_known_and_keeps_its_age() {
    for &phase in Phase::ALL {
        let mut snapshot = mk_snapshot(phase);
        let known = Blocker {
            code: BlockerCode::SubstrateUnknown,
            message: "known".to_owned(),
            since: at(5),
            evidence: json!(null),
            next_retry_at: None,
        };
        let earlier = Blocker {
            code: BlockerCode::InternalError,
            message: "the one before".to_owned(),
            since: at(6),
            ..known.clone()
        };
        snapshot.blockers = vec![known.clone(), earlier];
        let commit = fault(&snapshot, snapshot.claim_token, "a\0b", SWEEP, 0.5).unwrap();
        let (blockers, release) = parts(&commit);
        assert!(blockers.contains(&known), "{phase}: {blockers:?}");
        let shown: Vec<_> =
            blockers.iter().filter(|b| b.code == BlockerCode::InternalError).collect();
        assert_eq!(shown.len(), 1);
        assert!(shown[0].message.contains('b') && !shown[0].message.contains('\0'));
        assert_eq!(shown[0].since, at(6));
        assert_eq!(release.failures, snapshot.failures + 1);
        assert!(commit.events.is_empty() && commit.audit.is_empty());
    }
}

#[test]
fn a_worker_that_lost_its_claim_says_nothing() {
    let snapshot = mk_snapshot(Phase::Ready);
    let lost = ClaimToken(snapshot.claim_token.0 - 1);
    let refusal = fault(&snapshot, lost, "late", SWEEP, 0.5).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::ClaimLost);
}

proptest! {
    #[test]
    fn retries_grow_up_to_the_sweep(
        failures in 1_i32..i32::MAX,
        sweep in 1_u64..3_600,
        jitter in 0.0_f64..1.0,
    ) {
        let sweep = Duration::from_secs(sweep);
        let delay = retry_after(failures, sweep, jitter);
        prop_assert!(delay > Duration::ZERO);
        prop_assert!(delay <= sweep.mul_f64(1.25));
        prop_assert!(delay <= retry_after(failures.saturating_add(1), sweep, jitter));
    }

    #[test]
    fn after_many_failures_it_is_looked_at_as_rarely_as_what_is_settled(
        failures in 20_i32..i32::MAX,
        jitter in 0.0_f64..1.0,
    ) {
        prop_assert!(retry_after(failures, SWEEP, jitter) >= SWEEP.mul_f64(0.75));
    }
}

/// The failure is recorded with its reason in the audit and with what was observed; such a
/// record takes the lock.
#[test]
fn a_failure_stays_on_record() {
    let snapshot = mk_snapshot(Phase::Provisioning);
    let CompositeReport::Present(mut live) = mk_report(false) else { unreachable!() };
    live.failure = Some("no room".to_owned());
    live.evidence = json!({ "conditions": ["Ready"] });
    let commit = run(&snapshot, &CompositeReport::Present(live));
    assert_eq!(commit.audit[0].reason.as_deref(), Some("no room"));
    let failure = commit.writes.iter().find_map(|write| match write {
        Write::Broker(BrokerWrite::FailureRecord(id, failure)) => Some((*id, failure)),
        _ => None,
    });
    let (id, failure) = failure.expect("a record of the failure");
    assert_eq!((id, failure.at), (snapshot.attempt.id(), snapshot.now));
    assert_eq!(failure.observed["failure"], "no room");
    assert_eq!(failure.observed["evidence"]["conditions"][0], "Ready");
    let (id, revision) = (snapshot.attempt.id(), snapshot.attempt.revision());
    assert!(crate::commit::Recorded::new(id, revision, commit).is_none());
}

/// The document's ErrNodeDeregistrationFailed: the tick stops before the substrate is
/// touched, and the blocker names the seam.
#[test]
fn a_failed_tick_of_a_drain_names_the_seam() {
    let mut snapshot = mk_snapshot(Phase::Deregistering);
    snapshot.node = Some(mk_node());
    let failed = |snapshot: &ResourceSnapshot| {
        let commit = fault(snapshot, snapshot.claim_token, "the registry is away", SWEEP, 0.5);
        blockers(&commit.unwrap()).remove(0)
    };
    let drain = failed(&snapshot);
    assert_eq!(drain.code, BlockerCode::NodeDeregistrationFailed);
    assert_eq!(drain.evidence["seam"], "drain");
    assert_eq!(drain.evidence["node_id"], json!(mk_node().id));
    assert!(drain.message.contains("the registry is away"), "{}", drain.message);

    // The next tick that works drops it.
    snapshot.blockers = vec![drain];
    assert!(blockers(&run(&snapshot, &mk_report(true))).is_empty());

    // Nothing is drained any more, or yet.
    snapshot.blockers.clear();
    let without = ResourceSnapshot { node: None, ..snapshot.clone() };
    let mut ready = mk_snapshot(Phase::Ready);
    ready.node = Some(mk_node());
    for other in [without, ready] {
        assert_eq!(failed(&other).code, BlockerCode::InternalError);
    }
}

/// An update waits until an observation shows what it declared, however many ticks that takes.
#[test]
fn an_update_is_pending_until_the_substrate_has_it() {
    let observed = |commit: &Commit| {
        let write = |write: &Write| match write {
            Write::Broker(BrokerWrite::ObservedReplace(_, observed)) => Some(observed.clone()),
            _ => None,
        };
        commit.writes.iter().find_map(write)
    };
    let mut snapshot = mk_snapshot(Phase::Ready);
    snapshot.node = Some(mk_node());
    snapshot.observed = Some(snapshot.with_update_pending());
    let since = snapshot.update_pending_since();
    assert_eq!((since, snapshot.observed_shown()), (Some(snapshot.now), None));
    let CompositeReport::Present(mut older) = mk_report(true) else { panic!("it is present") };
    older.owned_hash = "of the older rendering".to_owned();
    let older = CompositeReport::Present(older);
    let unreadable = CompositeReport::Unknown { reason: "no route".to_owned() };
    for report in [older, unreadable, CompositeReport::Absent] {
        snapshot.observed = observed(&run(&snapshot, &report));
        snapshot.now = snapshot.now.plus(Duration::from_secs(1));
        assert_eq!(snapshot.update_pending_since(), since, "{report:?}");
        assert_eq!(snapshot.with_update_pending()[UPDATE_PENDING], json!(since), "the first one");
    }
    snapshot.observed = observed(&run(&snapshot, &mk_report(true)));
    assert_eq!(snapshot.update_pending_since(), None);
    assert!(snapshot.observed_shown().is_some());
}
