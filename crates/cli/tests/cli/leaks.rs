//! `slipway leaks`.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{ID, Reply, StandIn};

fn mk_leak(state: &str) -> Value {
    let resolved = state == "resolved";
    json!({
        "id": ID,
        "kind": "unclaimed_object",
        "state": state,
        "provisioned_resource_id": null,
        "cluster": "local",
        "namespace": "project",
        "name": "pr-1",
        "uid": "uid-1",
        "found_at": "2026-01-31T12:00:00.000000Z",
        "last_seen_at": "2026-01-31T12:10:00.000000Z",
        "evidence": { "pid": 7 },
        "remedy": "check whether anybody needs it; then `slipway leaks remove`",
        "removal_requested_at": null,
        "removal_requested_by": null,
        "removal_reason": null,
        "resolved_at": resolved.then_some("2026-01-31T12:20:00.000000Z"),
        "resolved_by": resolved.then_some("key:admin"),
        "resolution": null,
    })
}

#[tokio::test]
async fn without_a_verb_the_open_ones_are_listed() {
    let server = StandIn::new(vec![Reply::of(200, json!([mk_leak("open")]))]).await;
    let ended = server.run(&["leaks", "-o", "wide"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    for cell in ["KIND", "WHAT TO DO", "project/pr-1", "2026-01-31 12:10:00Z", "leaks remove"] {
        assert!(ended.output.contains(cell), "{cell}: {ended:?}");
    }
    server.run(&["leaks", "list", "--state", "all", "--kind", "missing_object"]).await;
    let expected = [
        "GET /api/v1/leaks?state=open&limit=500",
        "GET /api/v1/leaks?state=all&kind=missing_object&limit=500",
    ];
    assert_eq!(server.lines(), expected);
}

#[tokio::test]
async fn a_scan_shows_what_counts_and_what_is_suspected() {
    let look = json!([{
        "cluster": "local", "error": null, "objects": 3, "foreign": 1,
        "unreadable": ["project/broken: its composite.json is not JSON"],
        "leaks": [mk_leak("open")],
        "suspected": [{
            "kind": "missing_object", "namespace": "project", "name": "pr-2",
            "first_seen_at": "2026-01-31T12:00:00.000000Z",
            "counts_from": "2026-01-31T12:00:30.000000Z",
        }],
        "woken": 1, "resolved": 0,
    }]);
    let server = StandIn::new(vec![Reply::of(200, look.clone())]).await;
    let ended = server.run(&["leaks", "find"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    for text in ["3 objects of ours, 1 of others", "cannot be read: project/broken", "SUSPECTED"] {
        assert!(ended.output.contains(text), "{text}: {ended:?}");
    }
    assert_eq!(server.lines(), ["POST /api/v1/leaks/find"]);
    let ended = server.run(&["leaks", "find", "-o", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&ended.output).unwrap(), look);
}

#[tokio::test]
async fn a_removal_asks_and_says_why() {
    let line = ["leaks", "remove", ID, "--reason", "left behind"];
    let server = StandIn::new(Vec::new()).await;
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Usage, "{ended:?}");
    assert!(ended.errors.contains("--yes"), "{ended:?}");
    assert_eq!(server.lines(), [""; 0], "nothing was sent");

    let replies = || vec![Reply::of(200, mk_leak("open")), Reply::of(200, mk_leak("resolved"))];
    for (answer, exit) in [("n\n", Exit::Refused), ("y\n", Exit::Success)] {
        let server = StandIn::new(replies()).await;
        let ended = server.run_asked(&line, answer).await;
        assert_eq!(ended.exit, exit, "{answer:?}: {ended:?}");
        assert!(ended.errors.contains("Remove project/pr-1"), "{ended:?}");
        assert_eq!(server.lines().len() == 2, exit == Exit::Success, "{answer:?}");
    }
    let server = StandIn::new(vec![Reply::of(202, mk_leak("open"))]).await;
    let ended = server.run(&[&line[..], &["--yes"]].concat()).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.errors.contains("its removal has begun"), "{ended:?}");
    let asked = server.asked().remove(0);
    assert_eq!(asked.line, format!("POST /api/v1/leaks/{ID}/remove"));
    assert_eq!(asked.body, r#"{"reason":"left behind"}"#);
}

#[tokio::test]
async fn a_leak_is_shown_and_resolved() {
    let server = StandIn::new(vec![Reply::of(200, mk_leak("resolved"))]).await;
    let ended = server.run(&["leaks", "resolve", ID, "--reason", "it burned"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.output.contains("key:admin"), "{ended:?}");
    server.run(&["leaks", "get", ID]).await;
    let expected = [format!("POST /api/v1/leaks/{ID}/resolve"), format!("GET /api/v1/leaks/{ID}")];
    assert_eq!(server.lines(), expected);
}
