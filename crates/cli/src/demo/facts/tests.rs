//! Facts over handmade documents: each holds where it should and, more
//! importantly, fails where it should.

use std::collections::BTreeMap;

use serde_json::json;
use slipway_wire::blocker::{Blocker, Remedy};

use super::*;

fn mk_event(position: i64, event_type: EventType, aggregate: &str) -> Event {
    Event {
        id: format!("e-{position}"),
        position,
        event_type: event_type.as_str().to_owned(),
        aggregate_id: aggregate.to_owned(),
        resource_id: None,
        handle: None,
        changed: Vec::new(),
        revision: position,
        occurred_at: "2026-01-31T12:00:00Z".to_owned(),
        abandoned: false,
        payload: json!({}),
    }
}

fn mk_node(how: Option<&str>, deregistered_at: Option<&str>) -> Node {
    Node {
        id: "n-1".to_owned(),
        project: None,
        resource: None,
        project_id: "p-1".to_owned(),
        resource_id: "r-1".to_owned(),
        provisioned_resource_id: "a-1".to_owned(),
        hostname: "h".to_owned(),
        capabilities: vec!["drain".to_owned()],
        mesh_ip: None,
        version: None,
        checksum: None,
        status: None,
        registered: how.is_none(),
        reachability: "healthy".to_owned(),
        silent_seconds: None,
        registered_at: "2026-01-31T12:00:00Z".to_owned(),
        last_heartbeat_at: None,
        drain_requested_at: None,
        deregistered_at: deregistered_at.map(str::to_owned),
        deregistered_how: how.map(str::to_owned),
        deregistered_by: None,
        deregistered_reason: None,
    }
}

fn mk_explanation(phases: &[Phase]) -> Explanation {
    let entry = |phase: &Phase| HistoryEntry {
        at: "2026-01-31T12:00:00Z".to_owned(),
        from: None,
        to: phase.as_str().to_owned(),
        why: String::new(),
    };
    Explanation {
        failure: None,
        remedies: Vec::new(),
        kind: "resource".to_owned(),
        id: "r-1".to_owned(),
        name: "h".to_owned(),
        state: phases.last().map_or("", |phase| phase.as_str()).to_owned(),
        since: "2026-01-31T12:00:00Z".to_owned(),
        notice: None,
        waiting_for: None,
        deadline: None,
        overdue: false,
        next: String::new(),
        next_check_at: None,
        held_by: None,
        facts: BTreeMap::new(),
        parts: Vec::new(),
        observed: json!(null),
        observed_since: None,
        observed_stale: false,
        node: Some(mk_node(None, None)),
        blockers: Vec::new(),
        history: phases.iter().map(entry).collect(),
        older_history: None,
    }
}

#[test]
fn events_must_be_there_once_and_in_order() {
    let good: Vec<_> = ANNOUNCED
        .iter()
        .zip(1..)
        .map(|(kind, position)| mk_event(position, *kind, "a-1"))
        .collect();
    assert!(events("x", "a-1", &good).holds());
    assert!(!events("x", "a-2", &good).holds(), "none of another");
    let mut twice = good.clone();
    twice.push(mk_event(5, DELETED, "a-1"));
    assert!(!events("x", "a-1", &twice).holds());
    assert!(!events("x", "a-1", &good[..3]).holds());
}

#[test]
fn positions_must_be_dense() {
    let at = |position| mk_event(position, READY, "a");
    assert!(dense(&[]).holds());
    assert!(dense(&[at(4), at(5), at(6)]).holds());
    assert!(!dense(&[at(4), at(6)]).holds());
    assert!(!dense(&[at(4), at(4)]).holds());
}

#[test]
fn a_node_must_be_deregistered_in_its_way() {
    let forced = [mk_node(Some("forced"), None)];
    assert!(deregistered("x", "r-1", "forced", &forced).holds());
    assert!(!deregistered("x", "r-1", "acknowledged", &forced).holds());
    assert!(!deregistered("x", "r-2", "forced", &forced).holds());
    assert!(!deregistered("x", "r-1", "forced", &[mk_node(None, None)]).holds());
}

#[test]
fn a_node_must_leave_before_its_composite_is_deleted() {
    let seen = |node: Option<Node>, phases: &[Phase]| {
        left_first("x", &Explanation { node, ..mk_explanation(phases) }).holds()
    };
    let left = |at| Some(mk_node(Some("acknowledged"), Some(at)));
    let whole = [Phase::Deregistering, Phase::Deprovisioning, Phase::Deleted];
    assert!(seen(left("2026-01-31T12:00:00Z"), &whole));
    assert!(!seen(left("2026-01-31T12:00:00.1Z"), &whole), "it left later");
    assert!(!seen(Some(mk_node(None, None)), &whole), "it never left");
    assert!(!seen(None, &whole), "there is no node");
    assert!(!seen(left("2026-01-31T12:00:00Z"), &whole[..1]), "nothing was deleted");
}

#[test]
fn work_must_be_finished_before_the_node_leaves() {
    let left = |at| mk_node(Some("acknowledged"), Some(at));
    let work = Duration::from_secs(4);
    assert!(finished_its_work("x", Some(&left("2026-01-31T12:00:04Z")), work).holds());
    assert!(!finished_its_work("x", Some(&left("2026-01-31T12:00:03.9Z")), work).holds());
    assert!(!finished_its_work("x", Some(&mk_node(None, None)), work).holds());
    assert!(!finished_its_work("x", None, work).holds());
}

#[test]
fn the_work_that_is_left_counts_from_the_registration() {
    let work = Duration::from_secs(4);
    let mut seen = mk_explanation(&[Phase::Ready]);
    assert_eq!(work_left(&seen, work), Some(work), "ready at once, no heartbeat yet");
    seen.since = "2026-01-31T12:00:01Z".to_owned();
    assert_eq!(work_left(&seen, work), Some(Duration::from_secs(3)));
    for (heartbeat, left) in [("12:00:02.5", 1_500), ("12:00:00.5", 3_000), ("12:00:09", 0)] {
        let at = format!("2026-01-31T{heartbeat}Z");
        seen.node = Some(Node { last_heartbeat_at: Some(at), ..mk_node(None, None) });
        assert_eq!(work_left(&seen, work), Some(Duration::from_millis(left)), "{heartbeat}");
    }
    seen.node = None;
    assert_eq!(work_left(&seen, work), None);
}

#[test]
fn phases_may_be_skipped_but_not_walked_back() {
    use Phase::{Deleted, Deprovisioning, Deregistering, Enrolling, Pending, Provisioning, Ready};
    let all = [Pending, Provisioning, Enrolling, Ready, Deregistering, Deprovisioning, Deleted];
    assert!(walked("x", &mk_explanation(&all)).holds());
    let skipping = [Pending, Provisioning, Ready, Deregistering, Deprovisioning, Deleted];
    assert!(walked("x", &mk_explanation(&skipping)).holds());
    let back = [Pending, Ready, Enrolling, Ready, Deregistering, Deleted];
    assert!(!walked("x", &mk_explanation(&back)).holds());
    assert!(!walked("x", &mk_explanation(&all[..6])).holds(), "not at its end");
}

#[test]
fn a_blocker_must_name_node_deadline_and_remedy() {
    let mut seen = mk_explanation(&[Phase::Deregistering]);
    let limit = Duration::from_secs(2);
    let missing = blocker("x", "r-1", &seen, limit);
    assert!(missing.len() == 1 && !missing[0].holds(), "{missing:?}");
    seen.blockers.push(Blocker {
        code: "node_not_draining".to_owned(),
        message: String::new(),
        since: "2026-01-31T12:00:02Z".to_owned(),
        owner: "operator".to_owned(),
        evidence: json!({ "node_id": "n-1", "deadline": "2026-01-31T12:00:02.000000Z" }),
        next_retry_at: None,
        remedies: vec![Remedy {
            action: "force".to_owned(),
            command: Some("slipway resource force-drain r-1 --yes --reason <why>".to_owned()),
            role: "admin".to_owned(),
        }],
    });
    let found = blocker("x", "r-1", &seen, limit);
    assert!(found.iter().all(Fact::holds), "{found:?}");
    seen.blockers[0].evidence = json!({ "node_id": "n-2", "deadline": "later" });
    let wrong: Vec<_> =
        blocker("x", "r-2", &seen, limit).iter().filter(|fact| !fact.holds()).cloned().collect();
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong[0].name().contains("names the node"));
}

#[test]
fn a_deletion_must_be_done() {
    let deletion = |state: &str, done: bool| Deletion {
        id: "d-1".to_owned(),
        kind: "resource".to_owned(),
        target: None,
        target_id: "r-1".to_owned(),
        state: state.to_owned(),
        requested_by: "key:admin".to_owned(),
        reason: String::new(),
        members: Vec::new(),
        project: None,
        project_id: None,
        parent_id: None,
        cascade: false,
        resources: 1,
        member_count: None,
        deliveries: Vec::new(),
        scheduled_for: None,
        requested_at: String::new(),
        done_at: done.then(String::new),
        restorable_until: None,
        purge_protected: false,
        ended_at: None,
    };
    assert!(deletion_done("x", "r-1", &[deletion("done", true)]).holds());
    assert!(!deletion_done("x", "r-1", &[deletion("running", false)]).holds());
    assert!(!deletion_done("x", "r-1", &[deletion("done", false)]).holds());
    assert!(!deletion_done("x", "r-1", &[deletion("done", true), deletion("done", true)]).holds());
}
