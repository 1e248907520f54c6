//! Each kind in its states: what the explanation waits for, and what comes next.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::blocker::{Blocker, BlockerCode, Deadlines};
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::deletion::leak::{Leak, Removal, Resolved};
use crate::deletion::record::{Deletion, DeletionState};
use crate::fixtures::catalog::{mk_cluster, mk_project};
use crate::fixtures::{at, mk_deletion, mk_node, mk_snapshot, mk_token};
use crate::ids::{DrainId, LeakRecordId, NodeId, ProvisionedResourceId};
use crate::nodes::node::{DeregisteredHow, Deregistration, Drain};
use crate::nodes::token::Consumption;
use crate::operations::explanation::{AttemptLine, ExplainedKind, FailureLine, Holder, PhaseCount};
use crate::placement::cluster::{Cluster, Verification};

const TIMEOUT: Timeouts = Timeouts {
    deadlines: Deadlines {
        pending: Duration::from_secs(300),
        provisioning: Duration::from_secs(1_800),
        enrolling: Duration::from_secs(86_400),
        deregistering: Duration::from_secs(600),
        deprovisioning: Duration::from_secs(1_800),
        first_heartbeat: Duration::from_secs(300),
    },
    claimed_within: Duration::from_secs(60),
};

fn blocker(code: BlockerCode) -> Blocker {
    Blocker {
        code,
        message: "stuck".to_owned(),
        since: at(10),
        evidence: Value::Null,
        next_retry_at: None,
    }
}

fn line(snapshot: &ResourceSnapshot) -> AttemptLine {
    AttemptLine {
        now: snapshot.now,
        id: snapshot.attempt.id(),
        resource_id: snapshot.resource.id,
        handle: snapshot.resource.handle.to_string(),
        number: snapshot.attempt.attempt(),
        phase: snapshot.attempt.phase().to_string(),
        since: snapshot.attempt.phase_since(),
        created_at: snapshot.attempt.created_at(),
        in_use: true,
        blueprint_version: snapshot.blueprint.version.clone(),
        parameters: Default::default(),
        failure: None,
        absence_proven_at: None,
        abandoned_at: None,
        due_at: snapshot.due_at,
        holder: None,
        blockers: Vec::new(),
    }
}

fn older(snapshot: &ResourceSnapshot, phase: Phase) -> AttemptLine {
    AttemptLine {
        id: ProvisionedResourceId::new(Uuid::from_u128(900)),
        number: 0,
        phase: phase.to_string(),
        blockers: vec![blocker(BlockerCode::DeleteFailed)],
        ..line(snapshot)
    }
}

fn explained(snapshot: &ResourceSnapshot) -> crate::operations::explanation::Explanation {
    resource(snapshot, &[line(snapshot)], TIMEOUT)
}

#[test]
fn every_phase_says_what_happens_next() {
    for &phase in Phase::ALL {
        let found = explained(&mk_snapshot(phase));
        assert_eq!((found.kind, found.state.as_str()), (ExplainedKind::Resource, phase.as_str()));
        assert!(!found.next.is_empty(), "{phase}");
        // `Deleted` is not over until its absence is proven twice.
        assert_eq!(found.waiting_for.is_none(), phase == Phase::Ready, "{phase}");
    }
    let failed = explained(&mk_snapshot(Phase::Failed)).waiting_for.unwrap();
    assert!(failed.contains("it failed") && failed.contains("retries or deletes"), "{failed}");
}

#[test]
fn who_works_on_it_and_when_it_is_due_are_told() {
    let mut snapshot = mk_snapshot(Phase::Pending);
    (snapshot.now, snapshot.due_at) = (at(1_000), Some(at(1_010)));
    assert!(explained(&snapshot).next.contains(&at(1_010).to_string()));
    snapshot.due_at = Some(at(990));
    assert!(explained(&snapshot).next.contains("due now"));
    snapshot.due_at = Some(at(900));
    let unserved = explained(&snapshot);
    let since = snapshot.attempt.phase_since();
    assert_eq!(unserved.overdue, snapshot.now >= since.plus(TIMEOUT.deadlines.pending));
    assert!(unserved.next.contains("nothing until a control plane"), "{}", unserved.next);
    assert_eq!(unserved.blockers[0].code, BlockerCode::ClusterNotServed);
    let holder = Holder { worker: "plane-1".to_owned(), until: at(1_030) };
    let held = AttemptLine { holder: Some(holder.clone()), ..line(&snapshot) };
    let found = resource(&snapshot, &[held], TIMEOUT);
    assert_eq!(found.holder, Some(holder));
    assert!(found.next.contains("plane-1"), "{}", found.next);
}

/// An older attempt is shown until it is proven gone.
#[test]
fn an_older_attempt_is_shown_with_its_blockers_until_it_is_over() {
    let snapshot = mk_snapshot(Phase::Ready);
    let mut old = older(&snapshot, Phase::Deleted);
    let parts =
        |old: &AttemptLine| resource(&snapshot, &[line(&snapshot), old.clone()], TIMEOUT).parts;
    assert_eq!(parts(&old)[0].blockers[0].code, BlockerCode::DeleteFailed);
    assert_eq!(parts(&old)[0].resource_id, Some(snapshot.resource.id));
    old.absence_proven_at = Some(at(2_000));
    assert_eq!(parts(&old).len(), 1, "its blocker is still there");
    old.blockers.clear();
    assert!(parts(&old).is_empty());
    old.phase = Phase::Deprovisioning.to_string();
    assert!(parts(&old)[0].about.as_ref().unwrap().contains("taken down"));
}

#[test]
fn a_quarantined_row_is_explained_by_its_reason_once() {
    let snapshot = mk_snapshot(Phase::Ready);
    let mut row = AttemptLine { phase: "Sinking".to_owned(), ..line(&snapshot) };
    let found = quarantined(&row, "status is `Sinking`");
    assert_eq!(found.state, "Sinking");
    assert!(found.blockers[0].message.contains("status is `Sinking`"));
    row.blockers = vec![blocker(BlockerCode::RowInvalid)];
    assert_eq!(quarantined(&row, "x").blockers.len(), 1);
}

#[test]
fn a_node_is_registered_draining_or_gone() {
    let snapshot = mk_snapshot(Phase::Deregistering);
    let resource = Explained::of(&snapshot);
    let mut one = mk_node();
    let found = node(&one, at(1), &[], None);
    assert_eq!((found.state.as_str(), found.waiting_for), ("registered", None));
    one.last_heartbeat_at = Some(at(1));
    let silent = node(&one, at(10_000), &[], None);
    assert!(silent.waiting_for.unwrap().contains("a heartbeat"));
    one.drain = Some(Drain { id: DrainId::new(Uuid::from_u128(1)), requested_at: at(20) });
    let draining = node(&one, at(30), &[], Some(&resource.0));
    assert_eq!((draining.state.as_str(), draining.since), ("draining", at(20)));
    assert_eq!(draining.deadline, resource.0.deadline);
    assert_eq!(draining.blockers.len(), 1);
    one.deregistration = Some(Deregistration {
        at: at(40),
        how: DeregisteredHow::Forced,
        by: "key:admin".to_owned(),
        reason: Some("lost".to_owned()),
    });
    let gone = node(&one, at(50), &[], Some(&resource.0));
    assert!(gone.next.contains("forced") && gone.blockers.is_empty(), "{gone:?}");
    assert_eq!(gone.facts["deregistered_reason"], "lost");
}

struct Explained(crate::operations::explanation::Explanation);

impl Explained {
    fn of(snapshot: &ResourceSnapshot) -> Self {
        let mut snapshot = snapshot.clone();
        snapshot.blockers = vec![blocker(BlockerCode::NodeNotDraining)];
        Self(explained(&snapshot))
    }
}

#[test]
fn a_deletion_waits_for_what_its_target_waits_for() {
    let snapshot = mk_snapshot(Phase::Deregistering);
    let target = Explained::of(&snapshot).0;
    let mut asked = mk_deletion(&snapshot);
    let lines = [line(&snapshot)];
    let found = deletion(&asked, &lines, Vec::new(), Some(&target));
    assert_eq!(found.name, "deletion of resource web-1");
    assert!(found.waiting_for.unwrap().starts_with("Deregistering: "));
    assert_eq!(found.blockers, target.blockers);
    assert_eq!(found.parts.len(), 1 + lines.len());
    asked.scheduled_for = Some(at(5_000));
    for open in [DeletionState::Scheduled, DeletionState::Running, DeletionState::Purging] {
        asked.state = open;
        let found = deletion(&asked, &lines, Vec::new(), None);
        assert!(found.waiting_for.is_some(), "{open}");
    }
    asked.state = DeletionState::Done;
    let done = deletion(&asked, &lines, Vec::new(), Some(&target));
    assert!(done.next.contains("over"), "{}", done.next);
    assert!(done.blockers.is_empty() && done.waiting_for.is_none());

    // The part of the resource has the same times.
    let mut snapshot = snapshot;
    for (done_at, since) in [(None, asked.requested_at), (Some(at(990)), at(990))] {
        asked.done_at = done_at;
        snapshot.deletion = Some(asked.clone());
        let found = Explained::of(&snapshot).0;
        let part = found.parts.iter().find(|part| part.id == asked.id.as_uuid()).unwrap();
        assert_eq!(part.since, Some(since));
    }
}

#[test]
fn a_token_says_why_it_can_or_cannot_be_used() {
    let snapshot = mk_snapshot(Phase::Enrolling);
    let mut one = mk_token(1_000, 2_000, 5_000);
    let of = |one: &_, now, phase: Phase| {
        token(one, at(now), Some(&AttemptLine { phase: phase.to_string(), ..line(&snapshot) }))
    };
    let usable = of(&one, 1_500, Phase::Enrolling);
    assert_eq!((usable.state.as_str(), usable.deadline), ("usable", Some(at(2_000))));
    for phase in [Phase::Failed, Phase::Deregistering, Phase::Deleted] {
        assert!(of(&one, 1_500, phase).next.starts_with("it enrols nobody"), "{phase}");
    }
    assert!(usable.next.contains("is extended"), "{}", usable.next);
    let expired = of(&one, 2_000, Phase::Enrolling);
    assert_eq!(expired.state, "expired");
    assert!(expired.next.contains("mints another"), "{}", expired.next);
    let over = of(&one, 5_000, Phase::Enrolling);
    assert!(!over.next.contains("mints another"), "{}", over.next);
    one.issued_by = Some("ann".to_owned());
    let by_hand = of(&one, 1_500, Phase::Enrolling);
    assert!(by_hand.next.contains("not extended"), "{}", by_hand.next);
    one.issued_by = None;
    one.revoked_at = Some(at(1_200));
    assert_eq!(of(&one, 1_500, Phase::Enrolling).since, at(1_200));
    let node_id = NodeId::new(Uuid::from_u128(5));
    one.consumed = Some(Consumption { at: at(1_100), nonce: None, node_id, public_key: [0; 32] });
    let consumed = of(&one, 1_500, Phase::Enrolling);
    assert!(consumed.next.contains(&node_id.to_string()), "{}", consumed.next);
}

#[test]
fn a_leak_says_whom_it_waits_for() {
    let mut one = Leak {
        id: LeakRecordId::new(Uuid::from_u128(1)),
        kind: "unclaimed_object".to_owned(),
        finding: None,
        subject: ProvisionedResourceId::new(Uuid::from_u128(2)).into(),
        found_at: at(1),
        last_seen_at: None,
        cluster_id: None,
        cluster: Some("local".to_owned()),
        object_ref: None,
        uid: None,
        evidence: Value::Null,
        removal: None,
        resolved: None,
    };
    let open = leak(&one, None, Some(at(9)));
    assert!(open.waiting_for.unwrap().starts_with("a person: "));
    assert!(open.next.contains(&at(9).to_string()));
    one.removal =
        Some(Removal { at: at(3), by: "key:a".to_owned(), reason: "nobody's".to_owned() });
    assert_eq!(leak(&one, None, None).state, "being removed");
    one.resolved = Some(Resolved { at: at(4), by: None, resolution: Some("gone".to_owned()) });
    let over = leak(&one, None, None);
    assert_eq!((over.state.as_str(), over.waiting_for), ("resolved", None));
}

#[test]
fn what_is_stuck_in_a_project_and_a_cluster_is_counted_and_named() {
    let snapshot = mk_snapshot(Phase::Pending);
    let count =
        |phase: Phase, total, blocked| PhaseCount { phase: phase.to_string(), total, blocked };
    let mut facts = ClusterFacts {
        now: at(1_000),
        lag: None,
        holders: vec![("plane-1".to_owned(), 2)],
        counts: vec![count(Phase::Ready, 3, 0), count(Phase::Pending, 2, 1)],
        blocked: vec![older(&snapshot, Phase::Pending)],
        claimed_within: Duration::from_secs(60),
    };
    let registered = mk_cluster();
    let found = cluster(&registered, &facts);
    assert_eq!(found.waiting_for.as_deref(), Some("what blocks 1 of its 5 attempts"));
    assert_eq!(found.facts["phases"]["Ready"], 3);
    assert_eq!(found.facts["claims_held_by"]["plane-1"], 2);
    assert_eq!(found.parts[0].blockers[0].code, BlockerCode::DeleteFailed);
    let scheduled = Deletion {
        state: DeletionState::Scheduled,
        scheduled_for: Some(at(5_000)),
        ..mk_deletion(&mk_snapshot(Phase::Ready))
    };
    let of = project(&mk_project(), None, Some(&registered), Some(&scheduled), &facts);
    let notice = of.notice.as_deref().unwrap_or_default();
    assert!(notice.contains("slipway deletion cancel") && notice.contains(&at(5_000).to_string()));
    assert!(of.waiting_for.unwrap().starts_with("a placement: "));
    facts.counts = vec![count(Phase::Ready, 3, 0), count(Phase::Failed, 2, 0)];
    let failed = cluster(&registered, &facts).waiting_for.unwrap();
    assert!(failed.contains("2 of its 5 attempts that failed"), "{failed}");
    facts.lag = Some(Duration::from_secs(61));
    let unserved = cluster(&registered, &facts);
    assert_eq!(unserved.state, "not served");
    assert_eq!(unserved.blockers[0].code, BlockerCode::ClusterNotServed);
    assert_eq!(unserved.blockers[0].since, at(999));
    facts.counts = vec![count(Phase::Pending, 2, 0)];
    assert!(!cluster(&registered, &facts).facts.contains_key("blocked"), "nobody counts there");
    facts.lag = None;
    facts.counts.clear();
    let gone = Cluster { deleted_at: Some(at(950)), substrate_uid: None, ..registered };
    let gone = cluster(&gone, &facts);
    assert_eq!((gone.state.as_str(), gone.since, gone.waiting_for), ("deleted", at(950), None));
}

/// A control plane serves it and lacks a right there.
#[test]
fn a_cluster_that_cannot_be_used_says_why() {
    let facts = ClusterFacts {
        now: at(1_000),
        lag: None,
        holders: Vec::new(),
        counts: Vec::new(),
        blocked: Vec::new(),
        claimed_within: Duration::from_secs(60),
    };
    let problem = "it may not list namespaces";
    let verification =
        Verification { at: at(900), problem: Some(problem.to_owned()), facts: Value::Null };
    let registered =
        Cluster { substrate_uid: None, verification: Some(verification), ..mk_cluster() };
    let found = cluster(&registered, &facts);
    assert_eq!(
        (found.state.as_str(), &found.facts["problem"]),
        ("served, but cannot be used", &problem.into())
    );
    assert!(found.waiting_for.unwrap().contains(problem));
    let never = cluster(&Cluster { verification: None, ..registered }, &facts);
    assert_eq!(never.state, "never served");
}

#[test]
fn a_failed_attempt_is_named_with_its_reason_for_ever() {
    let snapshot = mk_snapshot(Phase::Ready);
    let failure = FailureLine {
        at: at(70),
        reason: "no room in fsn1".to_owned(),
        observed: serde_json::json!({ "ready": false }),
    };
    let mut first = AttemptLine {
        absence_proven_at: Some(at(90)),
        failure: Some(failure.clone()),
        ..older(&snapshot, Phase::Deleted)
    };
    first.blockers.clear();
    let found = resource(&snapshot, &[line(&snapshot), first.clone()], TIMEOUT);
    assert_eq!(found.failure, None, "the current attempt did not fail");
    let about = found.parts[0].about.as_deref().unwrap();
    assert!(about.contains("no room in fsn1"), "{about}");

    let itself = attempt(&first);
    assert_eq!((itself.kind, itself.attempt), (ExplainedKind::Attempt, Some(first.number)));
    assert_eq!(itself.failure, Some(failure.clone()));
    assert!(itself.next.starts_with("nothing"), "{}", itself.next);
    assert_eq!(itself.waiting_for, None);
    let leaving = older(&snapshot, Phase::Deprovisioning);
    let unproven = older(&snapshot, Phase::Deleted);
    let blocked = AttemptLine { absence_proven_at: Some(at(90)), ..unproven.clone() };
    for (line, what) in [(leaving, "substrate"), (unproven, "second proof"), (blocked, "blockers")]
    {
        let waiting = attempt(&line).waiting_for.unwrap();
        assert!(waiting.contains(what), "{waiting}");
    }

    // Without a failure an attempt that is gone is no longer of interest.
    let gone = AttemptLine { failure: None, ..first };
    assert!(resource(&snapshot, &[line(&snapshot), gone], TIMEOUT).parts.is_empty());
    let failed = mk_snapshot(Phase::Failed);
    let own = AttemptLine { failure: Some(failure), ..line(&failed) };
    let reason = resource(&failed, &[own], TIMEOUT).failure.map(|failure| failure.reason);
    assert_eq!(reason.as_deref(), Some("no room in fsn1"));
}
