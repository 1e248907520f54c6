//! `slipway resource update` and `replace`: what is shown, asked and sent.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{ID, Reply, StandIn, mk_resource};

fn version() -> Value {
    json!({
        "id": ID, "blueprint_id": ID, "blueprint": "local-node", "version": "v1",
        "xrd": "", "composition": "", "injection_strategy": "cloud-init-user-data",
        "mesh_role": "node", "provider_kinds": ["local"], "revision": 1,
        "published_at": "2026-01-31T12:00:00Z", "retired_at": null,
        "parameter_schema": { "parameters": [{ "name": "note", "type": "string" }] },
    })
}

fn updated(changes: Value) -> Reply {
    let mut document = mk_resource("Ready");
    document["changes"] = changes;
    Reply::of(200, document)
}

/// What was shown is what is sent.
#[tokio::test]
async fn an_update_shows_the_difference_asks_and_applies_it() {
    let change = json!([{ "field": "parameters.note", "before": "1", "after": "2" }]);
    for (answer, exit, sent) in [("n\n", Exit::Refused, 3), ("y\n", Exit::Success, 4)] {
        let found = Reply::of(200, json!([mk_resource("Ready")]));
        let replies = vec![
            found,
            Reply::of(200, version()),
            updated(change.clone()),
            updated(change.clone()),
        ];
        let server = StandIn::new(replies).await;
        let line = ["resource", "update", "web-1", "--param", "note=2", "--unset", "size"];
        let ended = server.run_asked(&line, answer).await;
        assert_eq!((ended.exit, server.lines().len()), (exit, sent), "{ended:?}");
        let shown = "- parameters.note: \"1\"\n+ parameters.note: \"2\"\n";
        assert!(ended.errors.contains(shown), "{}", ended.errors);
        assert!(ended.errors.contains("Change `web-1` so, in place?"), "{}", ended.errors);
        let asked = server.asked();
        assert_eq!(asked[2].line, format!("PATCH /api/v1/resources/{ID}?dry_run=true"));
        let body = r#"{"parameters":{"note":"2","size":null}}"#;
        for patch in &asked[2..] {
            assert_eq!(patch.body, body, "the type is that of the blueprint");
        }
    }
}

#[tokio::test]
async fn an_update_without_a_difference_or_a_yes_sends_no_change() {
    let replies = vec![Reply::of(200, json!([mk_resource("Ready")])), updated(json!([]))];
    let server = StandIn::new(replies).await;
    let ended = server.run(&["resource", "update", "web-1", "--label", "a=b", "--yes"]).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Success, 2), "{ended:?}");
    assert!(ended.errors.contains("`web-1` is declared so already"), "{}", ended.errors);
    for line in [
        vec!["resource", "update", "web-1", "--label", "a=b"],
        vec!["resource", "update", "web-1", "--yes"],
        vec!["resource", "replace", "web-1"],
    ] {
        let server = StandIn::new(Vec::new()).await;
        let ended = server.run(&line).await;
        assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 0), "{line:?}: {ended:?}");
    }
}

/// Ready alone is what it was before the update.
#[tokio::test]
async fn a_wait_ends_when_the_substrate_has_the_update() {
    let mut pending = mk_resource("Ready");
    pending["update_pending_since"] = json!("2026-01-31T12:00:00Z");
    let change = json!([{ "field": "labels.a", "after": "b" }]);
    let replies = vec![
        Reply::of(200, json!([mk_resource("Ready")])),
        updated(change.clone()),
        updated(change),
        Reply::of(200, pending),
        Reply::of(200, mk_resource("Ready")),
    ];
    let server = StandIn::new(replies).await;
    let line = ["resource", "update", "web-1", "--label", "a=b", "--yes", "--wait"];
    let ended = server.run(&line).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Success, 5), "{ended:?}");
    assert!(ended.errors.contains("web-1 Ready, update pending"), "{}", ended.errors);
}
