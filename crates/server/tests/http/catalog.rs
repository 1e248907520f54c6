//! Projects, clouds, credentials, clusters: created, read, changed, deleted.

use serde_json::{Value, json};

use crate::world::{KEY, World};

fn text<'v>(document: &'v Value, name: &str) -> &'v str {
    document[name].as_str().unwrap()
}

#[tokio::test]
async fn a_project_lives_from_create_to_delete_and_its_name_is_free_again() {
    let world = World::new().await;
    let answer = world.post("/api/v1/projects", r#"{"name":"team-a","labels":{"tier":"1"}}"#).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    let project = answer.json();
    let id = text(&project, "id").to_owned();
    assert_eq!(answer.header("location"), format!("/api/v1/projects/{id}"));
    assert_eq!((answer.header("etag"), &project["labels"]["tier"]), ("\"1\"", &"1".into()));

    for reference in ["team-a", &id] {
        let found = world.get(&format!("/api/v1/projects/{reference}")).await;
        assert_eq!(found.json(), project, "{reference}");
    }
    let taken = world.post("/api/v1/projects", r#"{"name":"team-a"}"#).await;
    assert_eq!(taken.refused(409, "name_taken").as_deref(), Some("name"));

    let path = "/api/v1/projects/team-a";
    let answer = world.ask("DELETE", &format!("{path}?reason=moved"), KEY, "").await;
    assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
    let deletion = answer.json();
    assert_eq!((text(&deletion, "kind"), text(&deletion, "state")), ("project", "done"));
    assert_eq!((text(&deletion, "reason"), text(&deletion, "target_id")), ("moved", id.as_str()));
    let location = answer.header("location").to_owned();
    assert_eq!(world.get(&location).await.json(), deletion);

    world.get(path).await.refused(404, "project_not_found");
    world.get(&format!("/api/v1/projects/{id}")).await.refused(404, "project_not_found");
    let gone = world.get(&format!("/api/v1/projects/{id}?show_deleted=true")).await.json();
    assert_eq!(gone["deletion_id"], deletion["id"]);
    world.ask("DELETE", path, KEY, "").await.refused(404, "project_not_found");
    let again = world.create("/api/v1/projects", &json!({ "name": "team-a" })).await;
    assert_ne!(again["id"], project["id"]);
}

#[tokio::test]
async fn a_project_with_resources_is_not_deleted_and_takes_no_more_when_it_is() {
    let world = World::new().await;
    world.declare("web-1").await;
    let refused = world.ask("DELETE", "/api/v1/projects/default", KEY, "").await;
    refused.refused(409, "project_not_empty");
    assert_eq!(refused.json()["details"]["resources"], 1);

    world.create("/api/v1/projects", &json!({ "name": "empty" })).await;
    world.ask("DELETE", "/api/v1/projects/empty", KEY, "").await;
    let body = r#"{"handle":"a","blueprint":"local-node","project":"empty"}"#;
    let late = world.post("/api/v1/resources", body).await;
    assert_eq!(late.refused(422, "project_not_found").as_deref(), Some("project"));
}

#[tokio::test]
async fn what_was_read_before_another_write_is_412() {
    let world = World::new().await;
    world.create("/api/v1/projects", &json!({ "name": "team-a" })).await;
    let path = "/api/v1/projects/team-a";
    let body = r#"{"labels":{"a":"b"}}"#;
    let first = world.ask_with("PATCH", path, ("if-match", "\"1\""), body).await;
    assert_eq!((first.status.as_u16(), first.header("etag")), (200, "\"2\""), "{first:?}");
    let stale = world.ask_with("PATCH", path, ("if-match", "\"1\""), body).await;
    stale.refused(412, "revision_stale");
    assert_eq!(stale.json()["details"]["current_revision"], 2);
    world.ask_with("DELETE", path, ("if-match", "\"1\""), "").await.refused(412, "revision_stale");
    let odd = world.ask_with("DELETE", path, ("if-match", "2"), "").await;
    assert_eq!(odd.refused(400, "invalid_input").as_deref(), Some("if-match"));
    let any = world.ask_with("PATCH", path, ("if-match", "*"), body).await;
    assert_eq!(any.status.as_u16(), 200, "{any:?}");

    let resource = format!("/api/v1/resources/{}", world.declare("web-1").await);
    let stale = world.ask_with("DELETE", &resource, ("if-match", "\"9\""), "").await;
    stale.refused(412, "revision_stale");
    let right = world.ask_with("DELETE", &resource, ("if-match", "\"1\""), "").await;
    assert_eq!(right.status.as_u16(), 202, "{right:?}");
}

#[tokio::test]
async fn a_cloud_and_its_credentials_hold_each_other() {
    let world = World::new().await;
    let body = json!({ "name": "berlin", "provider": "hetzner", "endpoint": { "region": "eu" } });
    let cloud = world.create("/api/v1/clouds", &body).await;
    let body = json!({ "cloud": "berlin", "name": "billing" });
    let credential = world.create("/api/v1/credentials", &body).await;
    let (cloud_id, id) = (text(&cloud, "id"), text(&credential, "id"));
    assert_eq!(text(&credential, "kv_mount"), "secret");
    let derived = format!("clouds/{cloud_id}/credentials/{id}");
    assert_eq!(text(&credential, "kv_path"), derived, "derived from the two ids");

    let refused = world.ask("DELETE", "/api/v1/clouds/berlin", KEY, "").await;
    refused.refused(409, "cloud_in_use");
    let path = format!("/api/v1/credentials/{id}");
    let moved = world.ask("PATCH", &path, KEY, r#"{"kv_path":"a/b"}"#).await.json();
    assert_eq!((text(&moved, "kv_mount"), text(&moved, "kv_path")), ("secret", "a/b"));
    let changed = r#"{"endpoint":{"region":"us"}}"#;
    let changed = world.ask("PATCH", "/api/v1/clouds/berlin", KEY, changed).await.json();
    assert_eq!((&changed["endpoint"]["region"], &changed["revision"]), (&"us".into(), &2.into()));

    let found = world.get("/api/v1/credentials?cloud=berlin&name=billing").await.json();
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(world.ask("DELETE", &path, KEY, "").await.status.as_u16(), 200);
    world.get(&path).await.refused(404, "credential_not_found");
    let gone = world.ask("DELETE", "/api/v1/clouds/berlin", KEY, "").await;
    assert_eq!(gone.status.as_u16(), 200, "{gone:?}");
    let orphan = world.post("/api/v1/credentials", r#"{"cloud":"berlin","name":"b"}"#).await;
    assert_eq!(orphan.refused(422, "cloud_not_found").as_deref(), Some("cloud"));
}

/// Anything that looks like a secret value is refused, and the answer repeats none of it.
#[tokio::test]
async fn a_body_that_brings_a_secret_is_refused() {
    let world = World::new().await;
    for field in ["value", "token", "password", "secret", "data"] {
        let body = json!({ "cloud": "local", "name": "b", field: "hunter2" });
        let answer = world.post("/api/v1/credentials", &body.to_string()).await;
        assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some(field));
        assert!(!answer.text.contains("hunter2"), "{answer:?}");
    }
    let body = r#"{"name":"c","provider":"p","endpoint":{"api_token":"hunter2"}}"#;
    let answer = world.post("/api/v1/clouds", body).await;
    assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some("endpoint.api_token"));
    assert!(!answer.text.contains("hunter2"), "{answer:?}");
}

#[tokio::test]
async fn a_credential_is_used_only_where_it_is_assigned() {
    let world = World::new().await;
    world.create("/api/v1/projects", &json!({ "name": "team-a" })).await;
    let body = json!({ "cluster": "local" }).to_string();
    let placed = world.ask("PUT", "/api/v1/projects/team-a/cluster", KEY, &body).await;
    assert_eq!(placed.json()["namespace_phase"], "Ready", "{placed:?}");
    let body = json!({ "cloud": "local", "name": "second" });
    let credential = world.create("/api/v1/credentials", &body).await;
    let id = text(&credential, "id");
    let declaration = json!({
        "handle": "web-1", "blueprint": "local-node", "project": "team-a", "credential": "second",
    })
    .to_string();
    let refused = world.post("/api/v1/resources", &declaration).await;
    assert_eq!(refused.refused(422, "credential_not_assigned").as_deref(), Some("credential"));

    let assignment = format!("/api/v1/projects/team-a/credentials/{id}");
    for _ in 0..2 {
        let put = world.ask("PUT", &assignment, KEY, "").await;
        assert_eq!(put.status.as_u16(), 204, "{put:?}");
    }
    let listed = world.get("/api/v1/projects/team-a/credentials").await.json();
    assert_eq!(listed[0]["credential"]["id"], id);
    let accepted = world.post("/api/v1/resources", &declaration).await;
    assert_eq!(accepted.status.as_u16(), 202, "{accepted:?}");

    world.ask("DELETE", &assignment, KEY, "").await.refused(409, "assignment_in_use");
    let path = format!("/api/v1/credentials/{id}");
    world.ask("DELETE", &path, KEY, "").await.refused(409, "credential_in_use");
    let unknown = format!("/api/v1/projects/nobody/credentials/{id}");
    world.ask("PUT", &unknown, KEY, "").await.refused(404, "project_not_found");
    let odd = world.ask("PUT", "/api/v1/projects/team-a/credentials/x", KEY, "").await;
    odd.refused(400, "invalid_input");
}

#[tokio::test]
async fn an_assignment_that_nobody_uses_is_withdrawn_once() {
    let world = World::new().await;
    world.create("/api/v1/projects", &json!({ "name": "team-a" })).await;
    let local = world.get("/api/v1/credentials?name=local").await.json();
    let path = format!("/api/v1/projects/team-a/credentials/{}", text(&local[0], "id"));
    world.ask("DELETE", &path, KEY, "").await.refused(404, "assignment_not_found");
    world.ask("PUT", &path, KEY, "").await;
    assert_eq!(world.ask("DELETE", &path, KEY, "").await.status.as_u16(), 204);
    assert_eq!(world.get("/api/v1/projects/team-a/credentials").await.json(), json!([]));
}

#[tokio::test]
async fn a_cluster_waits_for_its_process_and_a_project_with_resources_stays() {
    let world = World::new().await;
    let made = json!({ "name": "remote", "engine": "local", "namespace_prefix": "ns-" });
    let cluster = world.create("/api/v1/clusters", &made).await;
    assert_eq!(cluster["substrate_uid"], Value::Null);
    assert_eq!(world.get("/api/v1/clusters/remote").await.json(), cluster);
    let project = world.create("/api/v1/projects", &json!({ "name": "team-a" })).await;
    let path = "/api/v1/projects/team-a/cluster";
    world.get(path).await.refused(404, "assignment_not_found");
    let none = world.ask("PUT", path, KEY, r#"{"cluster":"nowhere"}"#).await;
    assert_eq!(none.refused(422, "cluster_not_found").as_deref(), Some("cluster"));
    let placed = world.ask("PUT", path, KEY, r#"{"cluster":"remote"}"#).await.json();
    assert_eq!(placed["namespace_phase"], "Pending", "nobody serves it yet");
    assert_eq!(placed["namespace"], format!("ns-{}", text(&project, "id")));
    let moved = world.ask("PUT", path, KEY, r#"{"cluster":"local"}"#).await.json();
    assert_eq!((&moved["namespace_phase"], &moved["revision"]), (&"Ready".into(), &2.into()));
    assert_eq!(world.ask("DELETE", path, KEY, "").await.status.as_u16(), 204);

    world.declare("web-1").await;
    let fixed = "/api/v1/projects/default/cluster";
    let refused = world.ask("PUT", fixed, KEY, r#"{"cluster":"remote"}"#).await;
    refused.refused(409, "cluster_assignment_immutable");
    world.ask("DELETE", fixed, KEY, "").await.refused(409, "cluster_assignment_immutable");
    let same = world.ask("PUT", fixed, KEY, r#"{"cluster":"local"}"#).await;
    assert_eq!(same.status.as_u16(), 200, "{same:?}");
    let listed = world.get("/api/v1/cluster-assignments").await.json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_cluster_is_changed_and_deleted_under_its_revision() {
    let world = World::new().await;
    let made = json!({ "name": "east", "engine": "crossplane", "access": "kubeconfig/east" });
    let cluster = world.create("/api/v1/clusters", &made).await;
    assert_eq!(cluster["namespace_prefix"], "slipway-project-", "as configured");
    let path = "/api/v1/clusters/east";
    let changed = world.ask("PATCH", path, KEY, r#"{"access":"in-cluster","region":"eu"}"#).await;
    assert_eq!(changed.header("etag"), "\"2\"", "{changed:?}");
    let changed = changed.json();
    assert_eq!((&changed["access"], &changed["region"]), (&"in-cluster".into(), &"eu".into()));
    let without = world.ask("PATCH", path, KEY, r#"{"region":""}"#).await.json();
    assert_eq!(without["region"], Value::Null);
    let bad = world.ask("PATCH", path, KEY, r#"{"access":"ssh"}"#).await;
    assert_eq!(bad.refused(400, "invalid_input").as_deref(), Some("access"));
    world.ask("PATCH", path, KEY, r#"{"name":"west"}"#).await.refused(400, "invalid_input");

    world.create("/api/v1/projects", &json!({ "name": "team-a" })).await;
    let place = "/api/v1/projects/team-a/cluster";
    world.ask("PUT", place, KEY, r#"{"cluster":"east"}"#).await.json();
    world.ask("DELETE", path, KEY, "").await.refused(409, "cluster_in_use");
    world.ask("DELETE", "/api/v1/clusters/local", KEY, "").await.refused(409, "cluster_in_use");
    assert_eq!(world.ask("DELETE", place, KEY, "").await.status.as_u16(), 204);
    let deletion = world.ask("DELETE", path, KEY, "").await.json();
    assert_eq!((&deletion["kind"], &deletion["state"]), (&"cluster".into(), &"done".into()));
    world.get(path).await.refused(404, "cluster_not_found");
    world.create("/api/v1/clusters", &made).await;
}

/// Every kind of the catalog is deleted alike: one record with names, a row that can be
/// read by its id, and a name that is free again.
#[tokio::test]
async fn every_kind_is_deleted_alike() {
    let world = World::new().await;
    let cloud = world.create("/api/v1/clouds", &json!({ "name": "x", "provider": "p" })).await;
    let of_cloud = json!({ "name": "x", "cloud": text(&cloud, "id") });
    let table = [
        ("projects", "project", json!({ "name": "x" })),
        ("credentials", "credential", of_cloud),
        ("clouds", "cloud", json!({ "name": "y", "provider": "p" })),
        ("clusters", "cluster", json!({ "name": "x", "engine": "local" })),
        ("blueprints", "blueprint", json!({ "slug": "x", "display_name": "X", "engine": "local" })),
        ("labels", "label", json!({ "key": "x" })),
    ];
    for (collection, kind, body) in table {
        let list = format!("/api/v1/{collection}");
        let made = world.create(&list, &body).await;
        assert_eq!((&made["deleted_at"], &made["deletion_id"]), (&Value::Null, &Value::Null));
        let name = if kind == "cloud" { "y" } else { "x" };
        let path = format!("{list}/{}", text(&made, "id"));
        let answer = world.ask("DELETE", &format!("{path}?reason=done"), KEY, "").await;
        assert_eq!(answer.status.as_u16(), 200, "{kind}: {answer:?}");
        let deletion = answer.json();
        let shown = json!({
            "kind": deletion["kind"], "target": deletion["target"], "reason": deletion["reason"],
            "state": deletion["state"], "members": deletion["members"],
        });
        let members = json!([{ "kind": kind, "name": name, "id": made["id"] }]);
        let expected = json!({
            "kind": kind, "target": name, "reason": "done", "state": "done", "members": members,
        });
        assert_eq!(shown, expected);
        let explained = format!("/api/v1/explain/deletion/{}", text(&deletion, "id"));
        let explained = world.get(&explained).await.json();
        assert_eq!(explained["name"], format!("deletion of {kind} {name}"));
        assert_eq!(explained["parts"][0]["name"], name, "{explained}");

        let missing = world.get(&path).await;
        assert_eq!(missing.status.as_u16(), 404, "{kind}: {missing:?}");
        let again = world.ask("DELETE", &path, KEY, "").await;
        assert_eq!(again.status.as_u16(), 404, "{kind}: {again:?}");
        let gone = world.get(&format!("{path}?show_deleted=true")).await.json();
        assert_eq!(gone["deletion_id"], deletion["id"], "{kind}");
        assert!(gone["deleted_at"].is_string(), "{gone}");
        let listed = async |query: &str| {
            let found = world.get(&format!("{list}{query}")).await.json();
            found.as_array().unwrap().iter().any(|item| item["id"] == made["id"])
        };
        assert_eq!((listed("").await, listed("?show_deleted=true").await), (false, true), "{kind}");
        world.create(&list, &body).await;
    }
    let deletions = world.get("/api/v1/deletions").await.json();
    assert!(deletions.as_array().unwrap().iter().all(|one| one["target"].is_string()));
}

#[tokio::test]
async fn a_blueprint_is_deleted_with_its_versions_once_nothing_is_made_from_it() {
    let world = World::new().await;
    world.declare("web-1").await;
    let used = world.ask("DELETE", "/api/v1/blueprints/local-node", KEY, "").await;
    used.refused(409, "blueprint_in_use");
    let used = used.json();
    assert_eq!(used["details"], json!({ "resources": 1, "names": ["default/web-1"] }));

    let path = "/api/v1/blueprints/manual-node";
    let made = world.get(path).await.json();
    let stale = world.ask_with("DELETE", path, ("if-match", "\"9\""), "").await;
    stale.refused(412, "revision_stale");
    assert_eq!(world.ask("DELETE", path, KEY, "").await.status.as_u16(), 200);
    let body = json!({ "handle": "web-2", "blueprint": "manual-node", "project": "default" });
    let refused = world.post("/api/v1/resources", &body.to_string()).await;
    assert_eq!(refused.refused(422, "blueprint_not_found").as_deref(), Some("blueprint"));
    let versions = format!("/api/v1/blueprints/{}/versions", text(&made, "id"));
    world.get(&versions).await.refused(404, "blueprint_not_found");
    let listed = world.get(&format!("{versions}?show_deleted=true")).await.json();
    assert_eq!(listed[0]["version"], "v1", "{listed}");
    let one = world.get(&format!("{versions}/v1?show_deleted=true")).await.json();
    assert_eq!(one, listed[0]);
}

#[tokio::test]
async fn bad_input_names_its_field() {
    let world = World::new().await;
    let long = "x".repeat(64);
    let table = [
        ("projects", json!({ "name": "Team A" }), "name"),
        ("projects", json!({ "name": long }), "name"),
        ("projects", json!({ "name": "a\u{0}" }), "name"),
        ("projects", json!({ "name": "0192f0c1-2b3c-7d4e-8f50-123456789abc" }), "name"),
        ("projects", json!({ "name": "a", "labels": { "b c": "d" } }), "labels.b c"),
        ("projects", json!({ "name": "a", "colour": "red" }), "colour"),
        ("projects", json!({}), "name"),
        ("clouds", json!({ "name": "a" }), "provider"),
        ("clouds", json!({ "name": "a", "provider": "P" }), "provider"),
        ("clouds", json!({ "name": "a", "provider": "p", "endpoint": { "a": [] } }), "endpoint.a"),
        ("credentials", json!({ "cloud": "local", "name": "a", "kv_path": "../x" }), "kv_path"),
        ("clusters", json!({ "name": "a", "engine": "magic" }), "engine"),
        (
            "clusters",
            json!({ "name": "a", "engine": "local", "namespace_prefix": "-" }),
            "namespace_prefix",
        ),
    ];
    for (list, body, field) in table {
        let answer = world.post(&format!("/api/v1/{list}"), &body.to_string()).await;
        assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some(field), "{list} {body}");
    }
    let unknown = "0192f0c1-2b3c-7d4e-8f50-ffffffffffff";
    for (path, code) in [
        ("projects", "project_not_found"),
        ("clouds", "cloud_not_found"),
        ("credentials", "credential_not_found"),
        ("clusters", "cluster_not_found"),
        ("blueprints", "blueprint_not_found"),
        ("labels", "label_not_found"),
    ] {
        world.get(&format!("/api/v1/{path}/{unknown}")).await.refused(404, code);
        let odd = world.get(&format!("/api/v1/{path}?color=red")).await;
        assert_eq!(odd.refused(400, "invalid_input").as_deref(), Some("color"), "{path}");
    }
}

#[tokio::test]
async fn lists_follow_their_links() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        world.create("/api/v1/projects", &json!({ "name": name })).await;
    }
    let first = world.get("/api/v1/projects?limit=3").await;
    let link = first.header("link");
    let target = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    let second = world.get(target).await.json();
    let mut names: Vec<String> = Vec::new();
    for page in [first.json(), second] {
        let page = page.as_array().unwrap();
        names.extend(page.iter().map(|project| text(project, "name").to_owned()));
    }
    assert_eq!(names, ["default", "a", "b", "c"]);
}
