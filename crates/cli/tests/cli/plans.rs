//! Plans of deletions, and deletions that show one and ask.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{ID, Reply, StandIn, mk_deletion, mk_problem};

const PLAN: &str = "0192f0c1-2b3c-7d4e-8f50-123456789def";

pub(crate) fn mk_plan() -> Value {
    let step = |action: &str, kind: &str, names: &[&str], of: &[&str]| {
        let of: Vec<_> =
            of.iter().map(|name| json!({ "blueprint": name, "count": names.len() })).collect();
        json!({
            "action": action, "kind": kind, "count": names.len(), "blueprints": of,
            "names": names,
        })
    };
    json!({
        "id": PLAN, "kind": "project", "target": "shop", "target_id": ID, "project_id": ID,
        "cascade": true, "planned_by": "key:admin", "planned_at": "2026-01-31T12:00:00.000000Z",
        "expires_at": "2026-01-31T13:00:00.000000Z", "digest": "abc", "resources": 2,
        "steps": [
            step("drain_nodes", "node", &["host-1"], &[]),
            step("delete_composites", "composite", &["web-1-a", "web-2-b"], &["local-node"]),
            step("mark_deleted", "resource", &["web-1", "web-2"], &["local-node"]),
            step("mark_deleted", "project", &["shop"], &[]),
            step("remove_namespace", "namespace", &["slipway-shop on cluster east"], &[]),
        ],
        "composed": { "web-1-a": ["Server/s-1"] },
        "composed_missing": "web-2-b: the cluster did not answer",
        "protected": ["resource web-2: holds the books"], "protected_count": 1,
        "refusals": [{ "code": "protected", "message": "resource `web-2` is protected" }],
        "grace_seconds": 0, "limit_seconds": 4_200, "typical_seconds": 12, "typical_of": 5,
    })
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[tokio::test]
async fn a_plan_is_made_and_shown_in_its_order() {
    let server = StandIn::new(vec![Reply::of(201, mk_plan()), Reply::of(200, mk_plan())]).await;
    let ended = server.run(&words("plan delete project shop --cascade")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = server.asked();
    assert_eq!(asked[0].line, "POST /api/v1/deletion-plans");
    assert_eq!(asked[0].body, r#"{"kind":"project","reference":"shop","cascade":true}"#);
    insta::assert_snapshot!(ended.output);
    let ended = server.run(&["plan", "get", PLAN]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.lines()[1], format!("GET /api/v1/deletion-plans/{PLAN}"));
}

/// What is shown is what goes: the deletion is held to the plan.
#[tokio::test]
async fn a_deletion_that_asks_shows_its_plan_and_is_held_to_it() {
    let replies = || vec![Reply::of(201, mk_plan()), Reply::of(200, mk_deletion())];
    let server = StandIn::new(replies()).await;
    let ended = server.run_asked(&words("project delete shop --cascade"), "n\n").await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Refused, 1), "{ended:?}");
    insta::assert_snapshot!(ended.errors);

    let server = StandIn::new(replies()).await;
    let ended = server.run_asked(&words("project delete shop --cascade"), "y\n").await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let request = format!("DELETE /api/v1/projects/shop?cascade=true&plan={PLAN}");
    assert_eq!(server.lines()[1], request);

    let server = StandIn::new(vec![Reply::of(200, mk_deletion())]).await;
    let line = format!("cloud delete berlin --plan {PLAN} --yes");
    let ended = server.run(&words(&line)).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.lines(), [format!("DELETE /api/v1/clouds/berlin?plan={PLAN}")]);
}

#[tokio::test]
async fn what_nobody_can_plan_is_not_deleted() {
    let missing = mk_problem(404, "project_not_found");
    let server =
        StandIn::new(vec![Reply::of(404, missing.clone()), Reply::of(200, json!([]))]).await;
    let ended = server.run_asked(&words("project delete shop"), "y\n").await;
    assert_eq!(ended.exit, Exit::NotFound, "{ended:?}");
    assert!(!server.lines().iter().any(|line| line.starts_with("DELETE")), "{server:?}");
    let server = StandIn::new(vec![Reply::of(404, missing), Reply::of(200, json!([]))]).await;
    let ended = server.run_asked(&words("project delete shop --ignore-not-found"), "y\n").await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
}
