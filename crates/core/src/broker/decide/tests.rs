//! Tests of the decision: every observation in every phase, under every mode
//! and with every kind of fact.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::blocker::{Blocker, Deadlines};
use crate::broker::prepare::Read;
use crate::broker::record::{Pace, Tick, record};
use crate::catalog::blueprint_version::{BlueprintVersion, Engine, MeshRole};
use crate::commit::{Recheck, Write};
use crate::deletion::DeletionWrite;
use crate::fixtures::{
    at, mk_actor, mk_blueprint, mk_facts, mk_frozen, mk_node, mk_placement, mk_report, mk_snapshot,
    mk_token,
};
use crate::ids::{DrainId, NodeId};
use crate::nodes::NodesWrite;
use crate::nodes::node::{DeregisteredHow, Deregistration, Drain};
use crate::nodes::token::{BootstrapToken, Carried, Consumption};
use crate::operations::control::Observing;
use crate::placement::namespace::NamespacePhase;

/// An unreadable, a foreign and an absent composite, and eighteen that exist.
fn every_report() -> Vec<CompositeReport> {
    let mut all = vec![
        CompositeReport::Unknown { reason: "no route".to_owned() },
        CompositeReport::Foreign { reason: "it belongs to the installation x".to_owned() },
        CompositeReport::Absent,
    ];
    // The last two carry a token, ready and not.
    for bits in 0..18_u8 {
        let mut report = mk_report(bits & 1 != 0);
        if let CompositeReport::Present(live) = &mut report {
            live.failure = (bits & 2 != 0).then(|| "quota exceeded".to_owned());
            live.terminating = bits & 4 != 0;
            if bits & 8 != 0 {
                live.owned_hash = "another".to_owned();
            }
            if bits & 16 != 0 {
                let token = mk_token(1_000, 90_000, 90_000);
                live.carried = Carried::Token { id: token.id, hash: token.hash };
            }
        }
        all.push(report);
    }
    all
}

fn every_facts() -> Vec<Facts> {
    let obstacle = || Obstacle::new(BlockerCode::ApplyFailed, "it cannot be rendered");
    vec![
        mk_facts(),
        Facts { owned_hash: Err(obstacle()), ..mk_facts() },
        Facts { injectable: Err(obstacle()), ..mk_facts() },
        Facts { served: false, ..mk_facts() },
    ]
}

fn every_mode() -> Vec<Mode> {
    let observing =
        Observing { since: at(900), by: "replica:a".to_owned(), reason: "restored".to_owned() };
    vec![Mode::Acting, mk_frozen(), Mode::Observing(observing)]
}

/// Each phase with each kind of node, token and placement.
fn every_snapshot() -> Vec<ResourceSnapshot> {
    let standalone =
        Arc::new(BlueprintVersion { mesh_role: MeshRole::Standalone, ..mk_blueprint() });
    let token = mk_token(1_000, 90_000, 90_000);
    let consumed = Consumption {
        at: at(1_000),
        nonce: None,
        node_id: NodeId::new(Uuid::from_u128(30)),
        public_key: [1; 32],
    };
    let consumed = BootstrapToken { consumed: Some(consumed), ..token.clone() };
    let draining = Drain { id: DrainId::new(Uuid::from_u128(600)), requested_at: at(990) };
    let draining = Node { drain: Some(draining), ..mk_node() };
    let mut degraded = mk_placement();
    degraded.namespace_phase = NamespacePhase::Degraded;
    let mut all = Vec::new();
    for &phase in Phase::ALL {
        let plain = mk_snapshot(phase);
        let standalone = ResourceSnapshot { blueprint: Arc::clone(&standalone), ..plain.clone() };
        for snapshot in [
            plain.clone(),
            standalone,
            ResourceSnapshot { node: Some(mk_node()), ..plain.clone() },
            ResourceSnapshot { node: Some(draining.clone()), ..plain },
        ] {
            for (token, placement) in [
                (None, Some(mk_placement())),
                (Some(token.clone()), Some(mk_placement())),
                (Some(consumed.clone()), Some(mk_placement())),
                (None, None),
                (None, Some(degraded.clone())),
            ] {
                all.push(ResourceSnapshot { token, placement, ..snapshot.clone() });
            }
        }
    }
    all
}

/// Calls `check` with every combination; returns how many there were.
fn for_each_case(
    mut check: impl FnMut(&ResourceSnapshot, &CompositeReport, &Facts, &Mode, Decision),
) -> usize {
    let (reports, facts, modes) = (every_report(), every_facts(), every_mode());
    let mut cases = 0;
    for snapshot in every_snapshot() {
        for (report, facts, mode) in reports.iter().flat_map(|report| {
            let modes = &modes;
            let with = move |facts| modes.iter().map(move |mode| (report, facts, mode));
            facts.iter().flat_map(with)
        }) {
            check(
                &snapshot,
                report,
                facts,
                mode,
                decide(&snapshot, report, facts, mode, snapshot.now),
            );
            cases += 1;
        }
    }
    cases
}

fn recorded(
    snapshot: &ResourceSnapshot,
    report: &CompositeReport,
    decision: &Decision,
) -> Vec<Write> {
    let outcome = match &decision.effect {
        Effect::None(outcome) => outcome.clone(),
        Effect::Apply(_) | Effect::Delete { .. } => Outcome::Done,
    };
    let (sweep, lease) = (Duration::from_secs(30), Duration::from_secs(20));
    let tick = Tick {
        read: Read::of(snapshot),
        report,
        decision,
        outcome,
        drain_id: DrainId::new(Uuid::from_u128(601)),
        pace: Pace { deadlines: Deadlines::default(), sweep, lease },
        jitter: 0.5,
    };
    record(snapshot, &tick, &mk_actor()).expect("nothing moved since it was read").writes
}

/// Invariant 1, for the whole decision and not for `next` alone: an unknown
/// composite keeps the phase (a teardown still drains), the phase is that of
/// `next`, and every decision can be recorded.
#[test]
fn the_decision_is_total_and_deterministic_and_holds_the_phase_on_unknown() {
    let cases = for_each_case(|snapshot, report, facts, mode, decision| {
        let again = decide(snapshot, report, facts, mode, snapshot.now);
        assert_eq!(decision, again, "{report:?}");
        let before = snapshot.attempt.phase();
        assert_eq!(decision.phase, next(decision.observed, before).1, "no mode moves a phase");
        if decision.observed.composite == Composite::Unknown {
            let drains = decision.observed.node == NodeFact::Registered && before.is_deletion();
            assert!(decision.phase == before || drains, "{decision:?}");
            let touches = matches!(decision.effect, Effect::Apply(_) | Effect::Delete { .. });
            assert!(!touches, "nothing is done about what cannot be read: {decision:?}");
        }
        if *mode == Mode::Acting {
            recorded(snapshot, report, &decision);
        }
    });
    assert_eq!(cases, (8 * 4 * 5) * 21 * 4 * 3);
}

/// Invariants 1 and 4: the node goes first, and a delete names the observed uid.
#[test]
fn no_decision_deletes_the_substrate_while_the_node_is_registered() {
    for_each_case(|_, report, _, _, decision| {
        if decision.action == Action::DeleteSubstrate {
            assert_ne!(decision.observed.node, NodeFact::Registered, "{decision:?}");
        }
        if let Effect::Delete { uid } = &decision.effect {
            assert_eq!(decision.action, Action::DeleteSubstrate);
            assert_eq!(Some(uid), report.live().map(|live| &live.uid));
        }
    });
}

/// Invariant 15: a mode that does not act yields neither an effect nor a token,
/// and the record writes neither to the registry nor a token.
#[test]
fn a_mode_that_does_not_act_yields_no_effect_and_no_token() {
    let mut withheld = 0;
    for_each_case(|snapshot, report, facts, mode, decision| {
        let Effect::None(outcome) = &decision.effect else {
            assert_eq!(*mode, Mode::Acting, "{decision:?}");
            return;
        };
        if *mode == Mode::Acting {
            assert!(!matches!(outcome, Outcome::Withheld { .. }), "{decision:?}");
            return;
        }
        withheld += usize::from(matches!(outcome, Outcome::Withheld { .. }));
        let acting = decide(snapshot, report, facts, &Mode::Acting, snapshot.now);
        assert_eq!(
            (decision.observed, decision.action, decision.phase, decision.wakes_placement),
            (acting.observed, acting.action, acting.phase, acting.wakes_placement),
            "only what is done differs"
        );
        let touches = |write: &Write| {
            matches!(
                write,
                Write::Nodes(NodesWrite::NodeUpdate(_))
                    | Write::Nodes(NodesWrite::TokenInsert(_))
                    | Write::Nodes(NodesWrite::TokenUpdate(_))
            )
        };
        assert!(!recorded(snapshot, report, &decision).iter().any(touches), "{decision:?}");
    });
    assert!(withheld > 1_000, "{withheld}");
}

/// Invariant 2: at Deleted the decision acts only on what is recorded, and the
/// record writes what is observed there.
#[test]
fn at_deleted_nothing_is_done_and_what_is_observed_is_a_leak_record() {
    for_each_case(|snapshot, report, _, _, decision| {
        if snapshot.attempt.phase() != Phase::Deleted {
            return;
        }
        assert_eq!((decision.action, decision.phase), (Action::Noop, Phase::Deleted));
        assert_eq!(decision.effect, Effect::None(Outcome::Done));
        let writes = recorded(snapshot, report, &decision);
        let leak = writes
            .iter()
            .any(|write| matches!(write, Write::Deletion(DeletionWrite::LeakInsert(_))));
        let found = decision.observed.node == NodeFact::Registered
            || !matches!(report, CompositeReport::Absent | CompositeReport::Unknown { .. });
        assert_eq!(leak, found, "{report:?}: {writes:?}");
    });
}

/// A token is minted only if the object will carry it.
#[test]
fn a_token_is_minted_only_for_an_apply_that_can_be_made() {
    let mut minted = 0;
    for_each_case(|snapshot, _, facts, mode, decision| {
        if let Effect::Apply(TokenDecision::Mint { .. }) = decision.effect {
            minted += 1;
            assert_eq!((mode, decision.action), (&Mode::Acting, Action::Apply));
            assert_eq!(*facts, mk_facts(), "it can be rendered, injected and applied");
            assert!(snapshot.placement.as_ref().is_some_and(Placement::is_ready));
            assert_ne!(decision.observed.node, NodeFact::NotExpected);
        }
    });
    assert!(minted > 0);
}

/// Another token takes another machine there: one that somebody used is left to a person.
#[test]
fn a_machine_that_keeps_its_document_is_replaced_only_if_no_node_enrolled_from_it() {
    let blueprint = BlueprintVersion { engine: Engine::Hetzner, ..mk_blueprint() };
    let expired = mk_token(100, 200, 90_000);
    let report = mk_report(true);
    let fresh = ResourceSnapshot {
        blueprint: Arc::new(blueprint),
        token: Some(expired),
        ..mk_snapshot(Phase::Enrolling)
    };
    let effect = |snapshot: &ResourceSnapshot, report: &CompositeReport| {
        decide(snapshot, report, &mk_facts(), &Mode::Acting, snapshot.now).effect
    };
    assert!(matches!(effect(&fresh, &report), Effect::Apply(TokenDecision::Mint { .. })));
    let left = Deregistration {
        at: at(990),
        how: DeregisteredHow::Left,
        by: "node".to_owned(),
        reason: None,
    };
    let gone = mk_node().deregistered(left);
    let used = ResourceSnapshot { node: Some(gone), ..fresh };
    let Effect::None(Outcome::Blocked(obstacle)) = effect(&used, &report) else {
        panic!("{:?}", effect(&used, &report));
    };
    assert_eq!(obstacle.code, BlockerCode::NodeLeft);
    let absent = effect(&used, &CompositeReport::Absent);
    assert!(matches!(absent, Effect::Apply(TokenDecision::Mint { .. })), "{absent:?}");
}

/// The placement loop is woken once, when a resource begins to wait for it.
#[test]
fn the_placement_is_woken_once_and_only_by_whom_it_keeps_waiting() {
    let mut snapshot = mk_snapshot(Phase::Pending);
    let decided = |snapshot: &ResourceSnapshot| {
        decide(snapshot, &CompositeReport::Absent, &mk_facts(), &Mode::Acting, snapshot.now)
    };
    assert!(!decided(&snapshot).wakes_placement, "it need not wait");
    let mut degraded = mk_placement();
    degraded.namespace_phase = NamespacePhase::Degraded;
    snapshot.placement = Some(degraded);
    let waiting = decided(&snapshot);
    assert!(waiting.wakes_placement);
    let Effect::None(Outcome::Blocked(obstacle)) = waiting.effect else { panic!("{waiting:?}") };
    snapshot.blockers.push(Blocker {
        code: obstacle.code,
        message: obstacle.message,
        since: snapshot.now,
        evidence: Value::Null,
        next_retry_at: None,
    });
    assert!(!decided(&snapshot).wakes_placement, "it was woken before");
    snapshot.placement = None;
    snapshot.blockers.clear();
    assert!(!decided(&snapshot).wakes_placement, "there is no placement to make ready");
}

/// The drain of a node whose substrate stopped would never be acknowledged.
#[test]
fn a_node_that_is_to_drain_is_kept_running() {
    let mut snapshot = mk_snapshot(Phase::Deregistering);
    snapshot.node = Some(mk_node());
    let decided = |snapshot: &ResourceSnapshot, ready| {
        decide(snapshot, &mk_report(ready), &mk_facts(), &Mode::Acting, snapshot.now).effect
    };
    assert_eq!(decided(&snapshot, false), Effect::Apply(TokenDecision::Keep));
    assert_eq!(decided(&snapshot, true), Effect::None(Outcome::Done));
    if let Some(node) = &mut snapshot.node {
        node.capabilities.clear();
    }
    assert_eq!(decided(&snapshot, false), Effect::None(Outcome::Done), "it cannot drain");
}

/// The observation after an apply counts; one that could not be read does not.
#[test]
fn the_answer_of_an_apply_replaces_the_observation() {
    let snapshot = mk_snapshot(Phase::Pending);
    let facts = mk_facts();
    let mut decision =
        decide(&snapshot, &CompositeReport::Absent, &facts, &Mode::Acting, snapshot.now);
    let before = decision.clone();
    let unknown = CompositeReport::Unknown { reason: "no route".to_owned() };
    assert!(!decision.applied(&snapshot, &unknown, &facts));
    assert_eq!(decision, before);
    assert!(decision.applied(&snapshot, &mk_report(true), &facts));
    assert_eq!(decision.phase, Phase::Enrolling);
}

#[test]
fn what_is_deleted_by_hand_is_let_go_in_order_and_nothing_else_is_touched() {
    let flags = [false, true];
    let nodes = [NodeFact::NotExpected, NodeFact::Absent, NodeFact::Registered];
    for node in nodes {
        for composite in [Composite::Unknown, Composite::Absent] {
            let observed = Observed { composite, node };
            assert_eq!(release_terminating(observed), Action::Noop);
            assert_eq!(is_open(observed), composite == Composite::Unknown);
        }
        for (ready, failed, terminating) in flags.into_iter().flat_map(|ready| {
            flags.into_iter().flat_map(move |failed| {
                flags.into_iter().map(move |terminating| (ready, failed, terminating))
            })
        }) {
            let composite = Composite::Present { ready, failed, terminating, drifted: false };
            let observed = Observed { composite, node };
            let expected = match (terminating, node) {
                (false, _) => Action::Noop,
                (true, NodeFact::Registered) => Action::DeregisterNode,
                (true, _) => Action::DeleteSubstrate,
            };
            assert_eq!((release_terminating(observed), is_open(observed)), (expected, terminating));
            assert_eq!(next(observed, Phase::Failed), (Action::Noop, Phase::Failed));
        }
    }
}

proptest! {
    /// Any times of a token yield a decision, and the same one for the same
    /// `now`.
    #[test]
    fn any_token_at_any_time_is_decided_on(
        expires in 0_i64..5_000,
        cap in 0_i64..5_000,
        now in 0_i64..5_000,
        report in proptest::sample::select((0..every_report().len()).collect::<Vec<_>>()),
        phase in proptest::sample::select(Phase::ALL.to_vec()),
    ) {
        let mut snapshot = mk_snapshot(phase);
        snapshot.token = Some(mk_token(0, expires, cap));
        let (report, facts) = (&every_report()[report], mk_facts());
        let decided = || decide(&snapshot, report, &facts, &Mode::Acting, at(now));
        prop_assert_eq!(decided(), decided());
        if let Effect::Apply(TokenDecision::Slide { expires_at }) = decided().effect {
            prop_assert!(expires_at <= at(cap) && expires_at > at(expires));
        }
        let released = recorded(&snapshot, report, &decided()).into_iter().find_map(|write| {
            if let Write::Release(release) = write { Some(release.recheck) } else { None }
        });
        let waits_for_nobody = matches!(decided().phase, Phase::Deleted | Phase::Failed);
        let comes_back = released.is_some_and(|recheck| recheck != Recheck::Never);
        prop_assert!(comes_back || waits_for_nobody);
    }
}
