//! What a selector finds is deleted together: plans for all, one question.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::plans::mk_plan;
use crate::stand_in::{ID, Reply, StandIn, mk_deletion, mk_problem, mk_resource};

const OTHER: &str = "0192f0c1-2b3c-7d4e-8f50-123456789abd";

/// Two resources with a label.
fn found() -> Reply {
    let mut other = mk_resource("Failed");
    (other["id"], other["handle"]) = (json!(OTHER), json!("web-2"));
    Reply::of(200, json!([mk_resource("Ready"), other]))
}

fn plan(refusals: &Value) -> Reply {
    let mut plan = mk_plan();
    plan["refusals"] = refusals.clone();
    plan["protected"] = json!([]);
    Reply::of(201, plan)
}

const DELETE: [&str; 6] = ["resource", "delete", "-l", "team=a", "--project", "shop"];

#[tokio::test]
async fn a_selector_shows_all_plans_and_asks_once() {
    let none = json!([]);
    let replies = vec![found(), plan(&none), plan(&none), Reply::of(202, mk_deletion())];
    let server = StandIn::new(replies.clone()).await;
    let ended = server.run_asked(&DELETE, "y\n").await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.errors.contains("Delete these 2 resources? [y/N]"), "{ended:?}");
    assert!(ended.errors.contains("web-1") && ended.errors.contains("web-2"), "{ended:?}");
    let lines = server.lines();
    assert_eq!(lines[0], "GET /api/v1/resources?project=shop&label=team%3Da&limit=500");
    assert_eq!(lines[1..3], ["POST /api/v1/deletion-plans", "POST /api/v1/deletion-plans"]);
    let plan = mk_plan()["id"].as_str().unwrap().to_owned();
    let held = |id: &str| format!("DELETE /api/v1/resources/{id}?plan={plan}");
    assert_eq!(lines[3..], [held(ID), held(OTHER)], "each is held to its plan");

    let server = StandIn::new(replies).await;
    let ended = server.run_asked(&DELETE, "n\n").await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Refused, 3), "{ended:?}");
    let ended = server.run(&DELETE).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 3), "a script says --yes");
}

#[tokio::test]
async fn one_that_would_be_refused_keeps_all() {
    let refusal = json!([{ "code": "protected", "message": "resource `web-2` is protected" }]);
    let server = StandIn::new(vec![found(), plan(&json!([])), plan(&refusal)]).await;
    let ended = server.run(&[&DELETE[..], &["--yes"]].concat()).await;
    assert_eq!(ended.exit, Exit::Refused, "{ended:?}");
    assert!(ended.errors.contains("nothing was deleted; `web-2`"), "{ended:?}");
    assert!(!server.lines().iter().any(|line| line.starts_with("DELETE")), "{ended:?}");
}

/// The brake counts the requests of a selector as it counts any others.
#[tokio::test]
async fn the_brake_ends_a_selector_in_the_middle() {
    let none = json!([]);
    let replies = vec![
        found(),
        plan(&none),
        plan(&none),
        Reply::of(202, mk_deletion()),
        Reply::of(409, mk_problem(409, "deletion_brake")),
    ];
    let server = StandIn::new(replies).await;
    let ended = server.run(&[&DELETE[..], &["--yes", "-o", "name"]].concat()).await;
    assert_eq!(ended.exit, Exit::Refused, "{ended:?}");
    assert_eq!(ended.output, format!("deletion/{ID}\n"));
    assert!(ended.errors.contains("1 of 2 are being deleted; `web-2` was refused"), "{ended:?}");
    assert!(ended.errors.contains("error[deletion_brake]"), "{ended:?}");
}

#[tokio::test]
async fn a_selector_that_finds_nothing_is_a_slip() {
    let server = StandIn::new(vec![Reply::of(200, json!([]))]).await;
    let ended = server.run(&[&DELETE[..], &["--yes"]].concat()).await;
    assert_eq!(ended.exit, Exit::NotFound, "{ended:?}");
    assert!(ended.errors.contains("no resource in project `shop` has the labels team=a"));
    let ended = server.run(&[&DELETE[..], &["--yes", "--ignore-not-found"]].concat()).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    for wrong in ["", "=a"] {
        let ended = server.run(&["resource", "delete", "-l", wrong, "--yes"]).await;
        assert_eq!(ended.exit, Exit::Usage, "everything is no selector: {ended:?}");
    }
    assert_eq!(server.lines().len(), 2);
}

const UPDATE: [&str; 8] =
    ["resource", "update", "-l", "team=a", "--project", "shop", "--unset", "note"];

fn updated(id: &str, handle: &str, changes: &Value) -> Reply {
    let mut document = mk_resource("Ready");
    (document["id"], document["handle"]) = (json!(id), json!(handle));
    document["changes"] = changes.clone();
    Reply::of(200, document)
}

#[tokio::test]
async fn an_update_by_selector_shows_each_difference_and_asks_once() {
    let change = json!([{ "field": "parameters.note", "before": "1", "after": null }]);
    let both = || [updated(ID, "web-1", &change), updated(OTHER, "web-2", &change)];
    let replies: Vec<_> = [found()].into_iter().chain(both()).chain(both()).collect();
    let server = StandIn::new(replies.clone()).await;
    let ended = server.run_asked(&UPDATE, "y\n").await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    for handle in ["web-1", "web-2"] {
        let shown = format!("{handle}\n  - parameters.note: \"1\"");
        assert!(ended.errors.contains(&shown), "{ended:?}");
    }
    assert!(ended.errors.contains("Change these 2 resources so, in place? [y/N]"), "{ended:?}");
    let lines = server.lines();
    let patch = |id: &str, dry: &str| format!("PATCH /api/v1/resources/{id}{dry}");
    let dry = "?dry_run=true";
    let expected = [patch(ID, dry), patch(OTHER, dry), patch(ID, ""), patch(OTHER, "")];
    assert_eq!(lines[1..], expected);

    let server = StandIn::new(replies).await;
    let ended = server.run_asked(&UPDATE, "n\n").await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Refused, 3), "{ended:?}");
    let ended = server.run(&UPDATE).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 3), "a script says --yes");
}

#[tokio::test]
async fn an_update_that_one_refuses_changes_none() {
    let change = json!([{ "field": "parameters.note", "before": "1", "after": null }]);
    let problem = Reply::of(409, mk_problem(409, "resource_failed"));
    let server = StandIn::new(vec![found(), updated(ID, "web-1", &change), problem]).await;
    let ended = server.run(&[&UPDATE[..], &["--yes"]].concat()).await;
    assert_eq!(ended.exit, Exit::Refused, "{ended:?}");
    assert!(ended.errors.contains("nothing was changed; `web-2`"), "{ended:?}");
    let dry = |line: &String| !line.starts_with("PATCH") || line.ends_with("dry_run=true");
    assert!(server.lines().iter().all(dry), "{:?}", server.lines());
}

/// Somebody wrote the second one after it was shown.
#[tokio::test]
async fn an_update_by_selector_stops_at_a_stale_revision() {
    let change = json!([{ "field": "parameters.note", "before": "1", "after": null }]);
    let replies = vec![
        found(),
        updated(ID, "web-1", &change),
        updated(OTHER, "web-2", &json!([])),
        Reply::of(412, mk_problem(412, "revision_stale")),
    ];
    let server = StandIn::new(replies).await;
    let ended = server.run(&[&UPDATE[..], &["--yes"]].concat()).await;
    assert_ne!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.errors.contains("1 of 2 are declared so already"), "{ended:?}");
    assert!(ended.errors.contains("0 of 1 were changed; `web-1` was refused"), "{ended:?}");
}
