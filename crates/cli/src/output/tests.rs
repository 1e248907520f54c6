//! Snapshots of what people see.

use serde_json::json;
use slipway_wire::access::{ApiKey, AuditEntry};
use slipway_wire::blocker::{Blocker, Remedy};
use slipway_wire::broker::{Attempt, HistoryEntry, Resource, ResourceDetail};
use slipway_wire::catalog::{BlueprintVersion, Credential, ParameterSchema, Project};
use slipway_wire::deletion::{Deletion, DeletionMember, Leak};
use slipway_wire::events::Event;
use slipway_wire::nodes::Node;
use slipway_wire::operations::{ExplainedPart, Explanation, Holder};
use slipway_wire::placement::ClusterAssignment;

use super::{Layout, observed};
use crate::kind::{Row, details, table};
use crate::operations::explain::text as explanation;

const TIME: &str = "2026-01-31T12:00:00.123456Z";
const NOW: &str = "2026-01-31T12:42:00Z";

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
        silent_seconds: None,
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
        project: Some("default".to_owned()),
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
        update_pending_since: None,
        second_attempt: None,
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

/// What `table` shows in terminals of these widths, and with `-o wide`.
fn at_widths<R: Row>(items: &[R]) -> String {
    let now = Some(NOW.parse().unwrap());
    let mut shown = Vec::new();
    for width in [60, 80, 120] {
        let text = table(items, Layout { width: Some(width), wide: false, now });
        assert_eq!(text.lines().count(), items.len() + 1, "a line a row at {width}:\n{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= usize::from(width), "at {width}: {line:?}");
        }
        shown.push(format!("--- {width}\n{text}"));
    }
    let wide = table(items, Layout { width: Some(60), wide: true, now });
    assert_eq!(wide.lines().count(), items.len() + 1, "{wide}");
    shown.push(format!("--- wide\n{wide}"));
    shown.join("\n")
}

#[test]
fn resources_at_every_width() {
    let silent = Node { reachability: "stale".to_owned(), silent_seconds: Some(190), ..mk_node() };
    let ready = Resource {
        phase: "Ready".to_owned(),
        blockers: Vec::new(),
        node: Some(silent),
        project: Some("shop".to_owned()),
        ..mk_resource("a")
    };
    insta::assert_snapshot!(at_widths(&[mk_resource("checkout-worker-eu-central-1"), ready]));
}

/// Where an older server answers, or a name is gone, the id is shown.
#[test]
fn what_has_no_name_is_shown_by_its_id() {
    let plain = Resource { project: None, ..mk_resource("web-1") };
    let shown = table(std::slice::from_ref(&plain), None);
    assert!(shown.contains(&plain.project_id), "{shown}");
}

fn mk_event(position: i64) -> Event {
    Event {
        id: "0192f0c1-0000-7000-8000-0000000000e1".to_owned(),
        position,
        event_type: "broker.ProvisionedResourceDeregistrationRequested".to_owned(),
        aggregate_id: "0192f0c1-0000-7000-8000-000000000003".to_owned(),
        resource_id: Some("0192f0c1-0000-7000-8000-000000000002".to_owned()),
        handle: Some("web-1".to_owned()),
        changed: Vec::new(),
        revision: 4,
        occurred_at: TIME.to_owned(),
        abandoned: false,
        payload: json!({}),
    }
}

fn mk_audit() -> AuditEntry {
    AuditEntry {
        id: "0192f0c1-0000-7000-8000-0000000000a1".to_owned(),
        at: TIME.to_owned(),
        actor: "key:admin".to_owned(),
        actor_name: None,
        verb: "resource.force_drain".to_owned(),
        kind: "resource".to_owned(),
        subject: Some("web-1".to_owned()),
        subject_id: "0192f0c1-0000-7000-8000-000000000002".to_owned(),
        project: Some("default".to_owned()),
        project_id: Some("0192f0c1-0000-7000-8000-000000000001".to_owned()),
        reason: Some("the machine burned down, and nobody will ever hear of it again".to_owned()),
        details: json!({}),
        correlation_id: Some("c-1".to_owned()),
    }
}

fn mk_deletion(id: &str) -> Deletion {
    Deletion {
        id: id.to_owned(),
        kind: "resource".to_owned(),
        target: Some("web-1".to_owned()),
        target_id: "0192f0c1-0000-7000-8000-000000000002".to_owned(),
        state: "running".to_owned(),
        requested_by: "key:admin".to_owned(),
        reason: "replaced by a larger one that was ordered last week".to_owned(),
        members: Vec::new(),
        project: Some("shop".to_owned()),
        project_id: None,
        parent_id: None,
        cascade: false,
        resources: 1,
        member_count: None,
        deliveries: Vec::new(),
        scheduled_for: None,
        requested_at: TIME.to_owned(),
        done_at: None,
        restorable_until: None,
        purge_protected: false,
        ended_at: None,
    }
}

#[test]
fn events_and_records_at_every_width() {
    insta::assert_snapshot!(at_widths(&[mk_event(7), mk_event(12_345)]));
    let by_node = AuditEntry {
        actor: "node:0192f0c1-0000-7000-8000-00000000000a".to_owned(),
        actor_name: Some("web-1".to_owned()),
        reason: None,
        ..mk_audit()
    };
    insta::assert_snapshot!(at_widths(&[mk_audit(), by_node]));
    // Of one millisecond.
    let ids = ["0192f0c1-2b3c-7001-8000-00000000000a", "0192f0c1-2b3c-7002-8000-00000000000b"];
    insta::assert_snapshot!(at_widths(&ids.map(mk_deletion)));
}

#[test]
fn the_catalog_and_the_keys_at_every_width() {
    let project = Project {
        id: "0192f0c1-0000-7000-8000-000000000001".to_owned(),
        name: "default".to_owned(),
        labels: [("team".to_owned(), "blue".to_owned()), ("cost-centre".to_owned(), "4711".into())]
            .into(),
        mesh_cidr: "100.64.0.0/10".to_owned(),
        revision: 1,
        created_at: TIME.to_owned(),
        updated_at: TIME.to_owned(),
        deleted_at: None,
        deletion_id: None,
    };
    insta::assert_snapshot!(at_widths(&[project]));
    let credential = Credential {
        id: "0192f0c1-0000-7000-8000-000000000005".to_owned(),
        cloud: Some("eu".to_owned()),
        cloud_id: "0192f0c1-0000-7000-8000-000000000004".to_owned(),
        name: "deploy".to_owned(),
        kv_mount: "secret".to_owned(),
        kv_path: "slipway/clouds/0192f0c1-0000-7000-8000-000000000004/credentials/0192f0c1-0000-7000-8000-000000000005".to_owned(),
        revision: 1,
        created_at: TIME.to_owned(),
        updated_at: TIME.to_owned(),
        deleted_at: None,
        deletion_id: None,
    };
    insta::assert_snapshot!(at_widths(&[credential]));
    let version = BlueprintVersion {
        id: "0192f0c1-0000-7000-8000-000000000006".to_owned(),
        blueprint_id: "0192f0c1-0000-7000-8000-000000000007".to_owned(),
        blueprint: "server".to_owned(),
        version: "v1".to_owned(),
        xrd: String::new(),
        composition: String::new(),
        parameter_schema: ParameterSchema::default(),
        injection_strategy: "cloud-init-user-data".to_owned(),
        mesh_role: "node".to_owned(),
        provider_kinds: vec!["hetzner".to_owned()],
        install_definitions: false,
        composition_name: None,
        surge: false,
        composite: None,
        revision: 1,
        published_at: TIME.to_owned(),
        retired_at: None,
    };
    insta::assert_snapshot!(at_widths(&[version]));
    let key = ApiKey {
        id: "0192f0c1-0000-7000-8000-000000000008".to_owned(),
        name: "ci".to_owned(),
        role: "operator".to_owned(),
        project: Some("default".to_owned()),
        project_id: Some("0192f0c1-0000-7000-8000-000000000001".to_owned()),
        state: "usable".to_owned(),
        created_at: TIME.to_owned(),
        owner: "ada".to_owned(),
        rotated_by: None,
        created_by: Some("key:admin".to_owned()),
        expires_at: Some("2026-02-10T12:00:00.000000Z".to_owned()),
        rotated_at: None,
        previous_until: None,
        revoked_at: None,
        revision: 1,
    };
    insta::assert_snapshot!(at_widths(&[key]));
}

#[test]
fn placements_leaks_and_nodes_at_every_width() {
    let assignment = ClusterAssignment {
        project: Some("default".to_owned()),
        project_id: "0192f0c1-0000-7000-8000-000000000001".to_owned(),
        cluster: Some("eu-1".to_owned()),
        cluster_id: "0192f0c1-0000-7000-8000-000000000009".to_owned(),
        namespace: "slipway-0192f0c1-0000-7000-8000-000000000001".to_owned(),
        namespace_phase: "Degraded".to_owned(),
        withdrawn_at: None,
        providers: Vec::new(),
        problems: vec!["the ExternalSecret of hetzner reports: permission denied".to_owned()],
        revision: 1,
        created_at: TIME.to_owned(),
        updated_at: TIME.to_owned(),
    };
    insta::assert_snapshot!(at_widths(&[assignment]));
    let leak = Leak {
        id: "0192f0c1-0000-7000-8000-00000000000b".to_owned(),
        kind: "unclaimed_object".to_owned(),
        state: "open".to_owned(),
        resource: Some("web-1".to_owned()),
        provisioned_resource_id: Some("0192f0c1-0000-7000-8000-000000000003".to_owned()),
        cluster: Some("eu-1".to_owned()),
        namespace: Some("slipway-0192f0c1-0000-7000-8000-000000000001".to_owned()),
        name: Some("pr-0192f0c1-0000-7000-8000-000000000003".to_owned()),
        uid: None,
        found_at: TIME.to_owned(),
        last_seen_at: None,
        evidence: json!({}),
        remedy: "remove it".to_owned(),
        removal_requested_at: None,
        removal_requested_by: None,
        removal_reason: None,
        resolved_at: None,
        resolved_by: None,
        resolution: None,
    };
    insta::assert_snapshot!(at_widths(&[leak]));
    insta::assert_snapshot!(at_widths(&[mk_node()]));
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
fn one_deletion() {
    let member = DeletionMember {
        kind: "resource".to_owned(),
        name: Some("web-1".to_owned()),
        id: "0192f0c1-0000-7000-8000-000000000002".to_owned(),
    };
    let gone = Deletion {
        state: "done".to_owned(),
        reason: "two\nlines".to_owned(),
        members: vec![member],
        done_at: Some(TIME.to_owned()),
        ..mk_deletion("0192f0c1-0000-7000-8000-00000000000d")
    };
    insta::assert_snapshot!(details(&gone, None));
}

#[test]
fn an_explanation() {
    let explained = Explanation {
        failure: None,
        remedies: Vec::new(),
        kind: "resource".to_owned(),
        id: "r-1".to_owned(),
        name: "web-1".to_owned(),
        state: "Deregistering".to_owned(),
        since: TIME.to_owned(),
        notice: None,
        waiting_for: Some("node n-1 (`web-1`) to acknowledge its drain".to_owned()),
        deadline: Some(TIME.to_owned()),
        overdue: false,
        next: "the loop looks again at some time".to_owned(),
        next_check_at: Some(TIME.to_owned()),
        held_by: Some(Holder { worker: "plane-1".to_owned(), until: TIME.to_owned() }),
        facts: [("attempt".to_owned(), json!(2)), ("cluster".to_owned(), json!("local"))].into(),
        observed: json!({ "composite": "Absent", "since": TIME }),
        observed_since: Some(TIME.to_owned()),
        observed_stale: false,
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

/// What was observed is shown in lines with its time, and says if nobody checks it.
#[test]
fn an_observation_has_lines_and_a_time() {
    let seen = json!({
        "composite": { "state": "present", "ready": true, "failed": false },
        "node": "registered", "since": TIME, "evidence": {
            "conditions": [{ "type": "Ready", "status": "True" }], "ports": [22, 80], "x": null,
        },
    });
    let detail = ResourceDetail {
        resource: mk_resource("web-1"),
        observed: Some(seen.clone()),
        observed_since: Some(TIME.to_owned()),
        observed_stale: true,
        attempts: Vec::new(),
        history: Vec::new(),
        older_history: None,
    };
    insta::assert_snapshot!(details(&detail, Some(80)));
    let first = |since, stale| observed(&seen, since, stale).remove(0);
    assert_eq!(first(Some(TIME), false), "at the last check, the same since 2026-01-31 12:00:00Z");
    assert_eq!(first(None, true), "before, and not checked any more: it may be out of date");
    assert!(observed(&json!({ "since": TIME }), Some(TIME), false).is_empty());
}

#[test]
fn an_indented_line_keeps_its_indent_when_it_is_wrapped() {
    let value = "row_invalid\n  reason: the row breaks an invariant and is quarantined".to_owned();
    let shown = super::facts(vec![("blockers", Some(value))], Some(40));
    let expected = "blockers  row_invalid\n            reason: the row breaks an\n              invariant and is\n              quarantined";
    assert_eq!(shown, expected);
}
