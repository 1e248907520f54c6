//! Labels: their definitions, which are in effect, and lists filtered by them.

use serde_json::{Value, json};

use crate::world::{KEY, World};

fn handles(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["handle"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_definition_is_made_changed_and_deleted() {
    let world = World::new().await;
    let body = json!({ "key": "cost/center", "description": "who pays", "propagate": true });
    let label = world.create("/api/v1/labels", &body).await;
    let path = "/api/v1/labels/cost%2Fcenter";
    assert_eq!(world.get(path).await.json(), label);
    let taken = world.post("/api/v1/labels", &body.to_string()).await;
    assert_eq!(taken.refused(409, "name_taken").as_deref(), Some("key"));
    let changed = world.ask("PATCH", path, KEY, r#"{"propagate":false}"#).await.json();
    assert_eq!(
        (&changed["propagate"], &changed["description"]),
        (&false.into(), &"who pays".into())
    );
    let stale = world.ask_with("DELETE", path, ("if-match", "\"1\""), "").await;
    stale.refused(412, "revision_stale");
    let deletion = world.ask("DELETE", &format!("{path}?reason=unused"), KEY, "").await.json();
    assert_eq!((&deletion["target"], &deletion["reason"]), (&body["key"], &"unused".into()));
    world.get(path).await.refused(404, "label_not_found");
    let odd = world.post("/api/v1/labels", r#"{"key":"a b"}"#).await;
    assert_eq!(odd.refused(400, "invalid_input").as_deref(), Some("key"));
}

#[tokio::test]
async fn the_nearer_label_wins_and_lists_go_by_what_is_in_effect() {
    let world = World::new().await;
    let project = r#"{"labels":{"team":"a","tier":"low"}}"#;
    world.ask("PATCH", "/api/v1/projects/default", KEY, project).await;
    let web = world.declare("web").await;
    let batch = world.declare("batch").await;
    let path = format!("/api/v1/resources/{web}");
    let relabelled = world.ask("PATCH", &path, KEY, r#"{"labels":{"tier":"high"}}"#).await;
    assert_eq!(relabelled.header("etag"), "\"2\"", "{relabelled:?}");
    let shown = world.get(&path).await.json();
    let expected = json!({
        "team": { "value": "a", "source": "project" },
        "tier": { "value": "high", "source": "resource" },
    });
    assert_eq!(shown["effective_labels"], expected);
    assert_eq!(shown["labels"], json!({ "tier": "high" }));

    for (query, expected) in [
        ("label=tier%3Dhigh", vec!["web"]),
        ("label=tier%3Dlow", vec!["batch"]),
        ("label=tier=high", vec!["web"]),
        ("label=team", vec!["web", "batch"]),
        ("label=team=a&label=tier=low", vec!["batch"]),
        ("label=nothing", vec![]),
        ("blocked=true", vec![]),
        ("blocked=namespace_not_ready", vec![]),
    ] {
        let found = world.get(&format!("/api/v1/resources?{query}")).await;
        assert_eq!(handles(&found.json()), expected, "{query}");
    }
    let first = world.get("/api/v1/resources?limit=1&label=team%3Da").await;
    assert!(first.header("link").contains("&label=team%3Da"), "{first:?}");
    for (query, field) in [("label=a%20b", "label"), ("blocked=maybe", "blocked")] {
        let answer = world.get(&format!("/api/v1/resources?{query}")).await;
        assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some(field), "{query}");
    }
    assert_ne!(web, batch);
}
