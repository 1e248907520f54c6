//! Snapshots of what people see.

use serde_json::json;
use slipway_wire::blocker::{Blocker, Remedy};
use slipway_wire::broker::{Attempt, HistoryEntry, Resource};
use slipway_wire::deletion::{Deletion, DeletionMember};
use slipway_wire::events::Event;
use slipway_wire::nodes::Node;
use slipway_wire::operations::{ExplainedPart, Explanation, Holder};

use super::rows;
use crate::kind::{details, table};
use crate::operations::explain::text as explanation;

const TIME: &str = "2026-01-31T12:00:00.123456Z";

fn mk_node() -> Node {
    Node {
        id: "0192f0c1-0000-7000-8000-00000000000a".to_owned(),
        project: Some("default".to_owned()),
        project_id: "0192f0c1-0000-7000-8000-000000000001".to_owned(),
        resource: Some("web-1".to_owned()),
        resource_id: "0192f0c1-0000-7000-8000-000000000002".to_owned(),
        provisioned_resource_id: "0192f0c1-0000-7000-8000-000000000003".to_owned(),
        hostname: "web-1".to_owned(),
        capabilities: vec!["drain".to_owned()],
        mesh_ip: Some("100.64.0.2".to_owned()),
        version: Some("1.4.2".to_owned()),
        checksum: None,
        status: Some("healthy".to_owned()),
        registered: true,
        reachability: "healthy".to_owned(),
        registered_at: TIME.to_owned(),
        last_heartbeat_at: Some(TIME.to_owned()),
        drain_requested_at: None,
        deregistered_at: None,
        deregistered_how: None,
        deregistered_by: None,
        deregistered_reason: None,
    }
}

fn mk_blocker() -> Blocker {
    Blocker {
        code: "node_not_draining".to_owned(),
        message: "node web-1 has not acknowledged its drain".to_owned(),
        since: TIME.to_owned(),
        owner: "operator".to_owned(),
        evidence: json!({ "node_id": "n-1" }),
        next_retry_at: None,
        remedies: vec![Remedy {
            action: "do not wait for the node".to_owned(),
            command: Some("slipway resource force-drain r-1 --yes --reason <why>".to_owned()),
            role: "admin".to_owned(),
        }],
    }
}

fn mk_resource(handle: &str) -> Resource {
    Resource {
        id: "0192f0c1-0000-7000-8000-000000000002".to_owned(),
        project_id: "0192f0c1-0000-7000-8000-000000000001".to_owned(),
        handle: handle.to_owned(),
        effective_labels: std::collections::BTreeMap::new(),
        labels: [("team".to_owned(), "a".to_owned())].into(),
        blueprint: "local-node".to_owned(),
        blueprint_version: "v1".to_owned(),
        engine: "local".to_owned(),
        phase: "Deregistering".to_owned(),
        phase_since: TIME.to_owned(),
        revision: 2,
        created_at: TIME.to_owned(),
        updated_at: TIME.to_owned(),
        deleted_at: None,
        deletion_id: None,
        attempt: Attempt {
            id: "0192f0c1-0000-7000-8000-000000000003".to_owned(),
            number: 1,
            revision: 5,
            phase: "Deregistering".to_owned(),
            xr_name: "pr-1".to_owned(),
            parameters: [("busy_seconds".to_owned(), json!(4))].into(),
            deletion_requested_at: None,
            absence_proven_at: None,
            abandoned_at: None,
            failure_reason: None,
            created_at: TIME.to_owned(),
            updated_at: TIME.to_owned(),
        },
        node: Some(mk_node()),
        blockers: vec![mk_blocker()],
    }
}

#[test]
fn a_list_of_resources() {
    let plain = Resource { blockers: Vec::new(), ..mk_resource("a") };
    insta::assert_snapshot!(table(&[mk_resource("web-1"), plain], None));
}

#[test]
fn an_empty_list_says_so() {
    assert_eq!(table::<Resource>(&[], Some(80)), "none");
}

#[test]
fn a_table_fits_the_terminal() {
    for width in [60, 80, 120] {
        let text = table(&[mk_resource("web-1")], Some(width));
        for line in text.lines() {
            assert!(line.chars().count() <= usize::from(width), "{line:?}");
        }
        let broken = text.lines().count() > 2;
        assert_eq!(broken, width < 120, "{text}");
        let whole = text.contains(&mk_resource("web-1").id);
        assert!(whole, "an id that can be copied: {text}");
    }
}

#[test]
fn one_resource() {
    insta::assert_snapshot!(details(&mk_resource("web-1"), None));
}

#[test]
fn nodes_here_and_gone() {
    let gone =
        Node { deregistered_how: Some("forced".to_owned()), last_heartbeat_at: None, ..mk_node() };
    insta::assert_snapshot!(table(&[mk_node(), gone.clone()], None));
    insta::assert_snapshot!(details(&gone, None));
}

#[test]
fn events_and_deletions() {
    let event = Event {
        id: "e-1".to_owned(),
        position: 7,
        event_type: "broker.ProvisionedResourceReady".to_owned(),
        aggregate_id: "0192f0c1-0000-7000-8000-000000000003".to_owned(),
        revision: 4,
        occurred_at: TIME.to_owned(),
        abandoned: false,
        payload: json!({}),
    };
    insta::assert_snapshot!(table(&[event], None));
    let gone = Deletion {
        id: "d-1".to_owned(),
        kind: "resource".to_owned(),
        target_id: "r-1".to_owned(),
        state: "done".to_owned(),
        requested_by: "key:admin".to_owned(),
        reason: "two\nlines".to_owned(),
        members: vec![DeletionMember { kind: "resource".to_owned(), id: "r-1".to_owned() }],
        requested_at: TIME.to_owned(),
        done_at: Some(TIME.to_owned()),
        restorable_until: None,
    };
    insta::assert_snapshot!(table(std::slice::from_ref(&gone), None));
    insta::assert_snapshot!(details(&gone, None));
}

#[test]
fn an_explanation() {
    let explained = Explanation {
        kind: "resource".to_owned(),
        id: "r-1".to_owned(),
        name: "web-1".to_owned(),
        state: "Deregistering".to_owned(),
        since: TIME.to_owned(),
        waiting_for: Some("node n-1 (`web-1`) to acknowledge its drain".to_owned()),
        deadline: Some(TIME.to_owned()),
        overdue: false,
        next: "the loop looks again at some time".to_owned(),
        next_check_at: Some(TIME.to_owned()),
        held_by: Some(Holder { worker: "plane-1".to_owned(), until: TIME.to_owned() }),
        facts: [("attempt".to_owned(), json!(2)), ("cluster".to_owned(), json!("local"))].into(),
        observed: json!({ "composite": "Absent" }),
        parts: vec![ExplainedPart {
            kind: "provisioned_resource".to_owned(),
            id: "a-1".to_owned(),
            name: "web-1 attempt 1".to_owned(),
            state: "Deleted".to_owned(),
            since: Some(TIME.to_owned()),
            about: Some("an older attempt".to_owned()),
            blockers: vec![mk_blocker()],
        }],
        node: Some(mk_node()),
        blockers: vec![mk_blocker()],
        history: vec![
            HistoryEntry {
                at: TIME.to_owned(),
                from: None,
                to: "Pending".to_owned(),
                why: "declared".to_owned(),
            },
            HistoryEntry {
                at: TIME.to_owned(),
                from: Some("Ready".to_owned()),
                to: "Deregistering".to_owned(),
                why: "deletion requested by key:admin".to_owned(),
            },
        ],
        older_history: Some("/api/v1/resources/r-1/history".to_owned()),
    };
    insta::assert_snapshot!(explanation(&explained));
    let settled = Explanation { waiting_for: None, ..explained };
    assert!(explanation(&settled).contains("It waits for nothing."), "{settled:?}");
}

/// A list too wide for the terminal keeps its ids complete, on their own lines.
#[test]
fn a_list_fits_the_terminal_and_ids_stay_whole() {
    let ids = ["0192f0c1-0000-7000-8000-000000000001", "0192f0c1-0000-7000-8000-000000000002"];
    let list = |width| {
        let line = |id: &&str| vec!["web".to_owned(), "Ready ".repeat(8), (*id).to_owned()];
        rows(&["HANDLE", "PHASE", "ID"], ids.iter().map(line).collect(), width)
    };
    let narrow = list(Some(80));
    let expected = format!(
        "HANDLE  PHASE\n    ID\nweb     {0}\n    {1}\nweb     {0}\n    {2}",
        "Ready ".repeat(8).trim_end(),
        ids[0],
        ids[1]
    );
    assert_eq!(narrow, expected);
    for width in [40, 60, 80, 100, 200] {
        let text = list(Some(width));
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        assert!(ids.iter().all(|id| text.contains(id)), "{text}");
    }
    // Where not even the first column fits, every cell has lines of its own.
    let narrowest = rows(&["HANDLE"], vec![vec!["a b".repeat(3)]], Some(8));
    assert!(narrowest.starts_with("    HAND\n    LE\n"), "{narrowest}");
    // Narrower than that, the words of a cell still stay whole.
    assert!(list(Some(40)).contains("web\n    Ready Ready"), "{}", list(Some(40)));
    // In a pipe, a row is one line.
    assert_eq!(list(None).lines().count(), 3);
    assert_eq!(list(Some(200)), list(None));
}
