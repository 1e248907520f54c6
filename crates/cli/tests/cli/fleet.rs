//! The commands of Fleet: names become ids, secrets are shown once, content is not shown.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::plans::mk_plan;
use crate::stand_in::{ID, Reply, StandIn, mk_deletion, mk_problem};

const OTHER: &str = "0192f0c1-2b3c-7d4e-8f50-123456789def";
const TIME: &str = "2026-01-31T12:00:00.000000Z";

fn mk_generator() -> Value {
    json!({
        "id": ID, "name": "ci", "description": "pipeline", "is_active": true, "is_system": false,
        "last_active_at": null, "created_at": TIME, "updated_at": TIME, "deleted_at": null,
    })
}

fn mk_stack(name: &str) -> Value {
    json!({
        "id": OTHER, "name": name, "description": null, "generator_id": ID, "created_at": TIME,
        "updated_at": TIME, "deleted_at": null,
    })
}

fn mk_agent(cluster: &str) -> Value {
    json!({
        "id": OTHER, "name": "edge", "cluster_name": cluster, "status": "INACTIVE",
        "last_heartbeat": TIME, "k8s_reachable": true, "k8s_api_latency_ms": 12,
        "k8s_reported_at": TIME, "created_at": TIME, "updated_at": TIME, "deleted_at": null,
    })
}

fn mk_object(number: i64, content: &str) -> Value {
    json!({
        "id": ID, "stack_id": OTHER, "sequence_id": number, "yaml_content": content,
        "yaml_checksum": format!("{number:064}"), "is_deletion_marker": content.is_empty(),
        "submitted_at": TIME, "created_at": TIME, "updated_at": TIME, "deleted_at": null,
    })
}

fn mk_template(version: i32, generator: Option<&str>) -> Value {
    json!({
        "id": format!("0192f0c1-2b3c-7d4e-8f50-12345678900{version}"), "name": "site",
        "version": version, "generator_id": generator, "description": null, "checksum": "abc",
        "template_content": "a: {{ b }}", "parameters_schema": "{}", "created_at": TIME,
        "updated_at": TIME, "deleted_at": null,
    })
}

fn ok(body: Value) -> Reply {
    Reply::of(200, body)
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[tokio::test]
async fn the_key_of_a_generator_is_shown_once() {
    let made = json!({ "generator": mk_generator(), "pak": "slipway_abc_secret" });
    let server = StandIn::new(vec![Reply::of(201, made)]).await;
    let ended = server.run(&words("generator create ci --project shop --accept-secrets")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let body: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
    assert_eq!((&body["name"], &body["project"]), (&json!("ci"), &json!("shop")));
    assert_eq!(body["accepts_secrets"], true);
    assert!(
        ended.output.contains("This key is shown once:\n\n    slipway_abc_secret"),
        "{ended:?}"
    );
    assert!(!ended.errors.contains("secret"), "{ended:?}");
}

#[tokio::test]
async fn a_name_is_looked_up_in_its_project() {
    let none = || ok(json!([]));
    let server = StandIn::new(vec![ok(json!([mk_stack("web")])), none(), none(), none()]).await;
    let ended = server.run(&words("stack get web --project shop")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let lines = server.lines();
    assert_eq!(lines[0], "GET /api/v1/stacks?project=shop&name=web&limit=500");
    assert_eq!(lines[1], format!("GET /api/v1/stacks/{OTHER}/labels"));

    let server = StandIn::new(vec![none(), ok(json!([mk_stack("web")]))]).await;
    let ended = server.run(&words("stack objects wep --project shop")).await;
    assert_eq!(ended.exit, Exit::NotFound, "{ended:?}");
    assert!(ended.errors.contains("there is no stack `wep` in project `shop`"), "{ended:?}");
    assert!(ended.errors.contains("did you mean `web`?"), "{ended:?}");

    let both = json!([mk_stack("web"), mk_stack("web")]);
    let server = StandIn::new(vec![ok(both)]).await;
    let ended = server.run(&words("stack get web")).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 1), "nothing is guessed");
    assert!(ended.errors.contains("choose with --project"), "{ended:?}");
}

#[tokio::test]
async fn an_agent_is_meant_by_its_cluster_where_its_name_is_not_enough() {
    let both = || ok(json!([mk_agent("berlin"), mk_agent("paris")]));
    let server = StandIn::new(vec![both()]).await;
    let ended = server.run(&words("agent activate edge")).await;
    assert_eq!(ended.exit, Exit::Usage, "{ended:?}");
    assert!(ended.errors.contains("`edge@berlin` or `edge@paris`"), "{ended:?}");

    let server = StandIn::new(vec![ok(json!([])), both(), ok(mk_agent("paris"))]).await;
    let ended = server.run(&words("agent activate edge@paris")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = server.asked();
    assert_eq!(asked[1].line, "GET /api/v1/agents?name=edge&limit=500");
    assert_eq!(asked[2].line, format!("PUT /api/v1/agents/{OTHER}"));
    assert_eq!(asked[2].body, r#"{"status":"ACTIVE"}"#);
}

#[tokio::test]
async fn the_newest_version_of_a_template_is_meant_or_the_named_one() {
    let versions = || ok(json!([mk_template(1, Some(ID)), mk_template(2, Some(ID))]));
    let server = StandIn::new(vec![versions()]).await;
    let ended = server.run(&words("template get site -o json")).await;
    let shown: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(shown["version"], 2, "{ended:?}");
    let server = StandIn::new(vec![ok(json!([])), versions()]).await;
    let ended = server.run(&words("template get site@1 -o json")).await;
    let shown: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(shown["version"], 1, "{ended:?}");
    let owners = ok(json!([mk_template(1, Some(ID)), mk_template(2, None)]));
    let server = StandIn::new(vec![owners]).await;
    let ended = server.run(&words("template get site")).await;
    assert_eq!(ended.exit, Exit::Usage, "of two owners: {ended:?}");
}

#[tokio::test]
async fn a_deletion_shows_its_plan_and_what_it_became() {
    let found = || ok(json!([mk_stack("web")]));
    let deleted =
        Reply { location: Some(format!("/api/v1/deletions/{ID}")), ..Reply::of(204, Value::Null) };
    let server = StandIn::new(vec![found(), Reply::of(201, mk_plan())]).await;
    let ended = server.run(&words("stack delete web --dry-run")).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Success, 2), "{ended:?}");
    let plan: Value = serde_json::from_str(&server.asked()[1].body).unwrap();
    assert_eq!(plan, json!({ "kind": "stack", "reference": OTHER, "cascade": false }));

    let script = vec![found(), deleted.clone(), ok(mk_deletion())];
    let server = StandIn::new(script).await;
    let ended = server.run(&words("stack delete web --keep --reason moved --yes")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let lines = server.lines();
    assert_eq!(lines[1], format!("DELETE /api/v1/stacks/{OTHER}?reason=moved&keep=true"));
    assert_eq!(lines[2], format!("GET /api/v1/deletions/{ID}"));

    let script = vec![found(), Reply::of(201, mk_plan()), deleted, ok(mk_deletion())];
    let server = StandIn::new(script).await;
    let ended = server.run_asked(&words("stack delete web"), "y\n").await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(server.lines()[2].contains("plan="), "held to what was shown: {:?}", server.lines());

    let server = StandIn::new(vec![ok(json!([]))]).await;
    let ended = server.run(&words("agent delete edge")).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 0), "nobody can agree: {ended:?}");
    let ended = server.run(&words("agent delete edge --yes --ignore-not-found")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
}

#[tokio::test]
async fn content_is_sent_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), "kind: A\nx: hidden-word\n").unwrap();
    let path = folder.path().to_str().unwrap();
    let object = || mk_object(7, "kind: A\nx: hidden-word\n");
    let script = vec![ok(json!([mk_stack("web")])), Reply::of(201, object())];
    let server = StandIn::new(script).await;
    let ended = server.run(&["stack", "submit", "web", "-f", path, "-o", "json"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(server.asked()[1].body.contains("hidden-word"), "{server:?}");
    assert!(!ended.output.contains("hidden-word"), "{ended:?}");
    let objects = json!([object(), mk_object(9, "")]);
    let server = StandIn::new(vec![ok(json!([mk_stack("web")])), ok(objects)]).await;
    let ended = server.run(&words("stack objects web")).await;
    let lines: Vec<_> = ended.output.lines().collect();
    assert!(lines[1].starts_with("7       content  23     000000000000"), "{lines:?}");
    assert!(lines[2].starts_with("9       marker   0 "), "{lines:?}");
    assert!(!ended.output.contains("hidden-word"), "{ended:?}");
    let nothing = server.run(&["stack", "submit", "web", "-f", "/nowhere"]).await;
    assert_eq!(nothing.exit, Exit::Usage, "{nothing:?}");
}

#[tokio::test]
async fn an_object_is_named_by_its_number() {
    let stack = || ok(json!([mk_stack("web")]));
    let objects = || ok(json!([mk_object(7, "a: 1"), mk_object(9, "a: 2")]));
    let server = StandIn::new(vec![stack(), objects(), Reply::of(204, Value::Null)]).await;
    let ended = server.run(&words("stack withdraw web 9 --yes")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.lines()[2], format!("DELETE /api/v1/deployment-objects/{ID}"));
    let server = StandIn::new(vec![stack(), objects()]).await;
    let ended = server.run(&words("stack withdraw web 8 --yes")).await;
    assert_eq!(ended.exit, Exit::NotFound, "{ended:?}");
    let server =
        StandIn::new(vec![stack(), objects(), Reply::of(201, mk_object(11, "a: 1"))]).await;
    let ended = server.run(&words("stack rollback web")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.asked()[2].body, r#"{"sequence_id":7}"#, "the content before");
}

#[tokio::test]
async fn labels_are_added_taken_away_and_shown() {
    let there = mk_problem(409, "entry_exists");
    let script = vec![
        ok(json!([mk_stack("web")])),
        Reply::of(409, there),
        Reply::of(204, Value::Null),
        ok(json!([{ "id": ID, "stack_id": ID, "label": "prod" }])),
    ];
    let server = StandIn::new(script).await;
    let ended = server.run(&words("stack label web --add prod --remove te/st")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = server.asked();
    assert_eq!(asked[1].body, "\"prod\"", "a bare text");
    assert_eq!(asked[2].line, format!("DELETE /api/v1/stacks/{OTHER}/labels/te%2Fst"));
    assert!(ended.output.contains("prod") && ended.errors.contains("already"), "{ended:?}");
    let same = json!([{ "key": "k", "value": "v" }]);
    let script = vec![ok(json!([mk_agent("berlin")])), ok(same.clone()), ok(same)];
    let server = StandIn::new(script).await;
    let ended = server.run(&words("agent annotate edge --add k=v")).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Success, 3), "{ended:?}");
}

#[tokio::test]
async fn registrations_and_targets_are_by_names() {
    let agent = || ok(json!([mk_agent("berlin")]));
    let script = vec![ok(json!([mk_generator()])), agent(), Reply::of(204, Value::Null)];
    let server = StandIn::new(script).await;
    let ended = server.run(&words("generator unregister ci edge")).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = server.asked();
    assert_eq!(asked[2].line, format!("DELETE /api/v1/generators/{ID}/register"));
    assert_eq!(asked[2].body, format!("{{\"agent_id\":\"{OTHER}\"}}"));
    let target = json!([{ "id": ID, "agent_id": OTHER, "stack_id": OTHER }]);
    let server = StandIn::new(vec![agent(), ok(target), ok(json!([mk_stack("web")]))]).await;
    let ended = server.run(&words("target list edge")).await;
    assert!(ended.output.contains("web    edge@berlin"), "{ended:?}");
}
