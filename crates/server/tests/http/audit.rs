//! Reading the audit, and that the table says what is audited.

use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::world::{Answer, KEY, World};

fn lines(answer: &Answer) -> Vec<Value> {
    answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn an_export_is_every_entry_oldest_first() {
    let world = World::new().await;
    // More than two pages of an export.
    for count in 0..510 {
        world.create("/api/v1/labels", &json!({ "key": format!("label-{count}") })).await;
    }
    let export = world.get("/api/v1/audit/export").await;
    assert_eq!(export.header("content-type"), "application/x-ndjson");
    let exported = lines(&export);
    assert!(exported.len() >= 511, "{}", exported.len());
    assert!(exported.is_sorted_by_key(|entry| entry["id"].as_str().unwrap().to_owned()));
    let mut listed = Vec::new();
    let mut path = "/api/v1/audit?limit=200".to_owned();
    loop {
        let answer = world.get(&path).await;
        listed.extend(answer.json().as_array().unwrap().clone());
        let Some(link) = answer.headers.get("link") else { break };
        let link = link.to_str().unwrap();
        path = link.strip_prefix('<').unwrap().split_once('>').unwrap().0.to_owned();
    }
    listed.reverse();
    assert_eq!(listed, exported, "a list is the same from the other end");
    let some = world.get("/api/v1/audit/export?verb=api_key.install").await;
    assert_eq!(lines(&some).len(), 1);
    assert_eq!(world.get("/api/v1/audit/export?actor=nobody").await.text, "");
}

/// A slow reader does not outlive its key: revoked or rotated away, it gets the
/// page it asked for before and then breaks off.
#[tokio::test]
async fn an_export_ends_with_its_key() {
    let world = World::new().await;
    for count in 0..510 {
        world.create("/api/v1/labels", &json!({ "key": format!("label-{count}") })).await;
    }
    for (name, method, tail) in [("revoked", "DELETE", ""), ("rotated", "POST", "/rotate")] {
        let made = json!({ "name": name, "role": "viewer" }).to_string();
        let made = world.post("/api/v1/keys", &made).await.json();
        let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
        let answer = world.open_as(key, "/api/v1/audit/export", &[]).await;
        let mut pages = answer.into_body().into_data_stream();
        let first = pages.next().await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&first).lines().count(), 500);
        let body = if method == "POST" { "{}" } else { "" };
        let ended = world.ask(method, &format!("/api/v1/keys/{id}{tail}"), KEY, body).await;
        assert!(ended.status.is_success(), "{ended:?}");
        assert!(pages.next().await.unwrap().is_err(), "{name}: it breaks off");
    }
}

#[tokio::test]
async fn filters_are_checked_and_kept_in_links() {
    let world = World::new().await;
    for path in ["/api/v1/audit", "/api/v1/audit/export"] {
        for (query, field) in [
            ("since=yesterday", "since"),
            ("until=1", "until"),
            ("since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "until"),
            ("id=x", "id"),
            ("colour=red", "colour"),
        ] {
            let answer = world.get(&format!("{path}?{query}")).await;
            let named = answer.refused(400, "invalid_input");
            assert_eq!(named.as_deref(), Some(field), "{path}?{query}");
        }
    }
    for name in ["a", "b"] {
        world.create("/api/v1/projects", &json!({ "name": name })).await;
    }
    let query = "actor=key%3Aadmin&verb=project.create&kind=project&since=2026-01-01T00:00:00Z";
    let first = world.get(&format!("/api/v1/audit?limit=1&{query}")).await;
    assert_eq!(first.json()[0]["details"]["name"], "b", "the newest first");
    let link = first.header("link");
    let target = link.strip_prefix('<').unwrap().split_once('>').unwrap().0;
    for filter in ["actor=key%3Aadmin", "verb=project.create", "kind=project", "since="] {
        assert!(target.contains(filter), "{filter} stays: {link}");
    }
    assert_eq!(world.get(target).await.json()[0]["details"]["name"], "a");
}

/// What the table says is written is written, for one row of each file.
#[tokio::test]
async fn rows_are_audited_by_their_verb() {
    let world = World::new().await;
    let resource = world.declare("web-1").await;
    let of = |tail: &str| format!("/api/v1/{tail}");
    let asked = [
        ("PATCH", of(&format!("resources/{resource}")), r#"{"labels":{"a":"b"}}"#),
        ("POST", of("projects"), r#"{"name":"p"}"#),
        ("PATCH", of("projects/p"), r#"{"labels":{}}"#),
        ("POST", of("clouds"), r#"{"name":"c","provider":"p"}"#),
        ("PATCH", of("clouds/c"), r#"{"endpoint":{}}"#),
        ("POST", of("credentials"), r#"{"cloud":"c","name":"x"}"#),
        ("POST", of("blueprints"), r#"{"slug":"s","display_name":"S","engine":"local"}"#),
        ("PATCH", of("blueprints/s"), r#"{"display_name":"T"}"#),
        ("POST", of("labels"), r#"{"key":"k"}"#),
        ("PATCH", of("labels/k"), r#"{"propagate":true}"#),
        ("DELETE", of("labels/k"), ""),
        ("POST", of("clusters"), r#"{"name":"c","engine":"local"}"#),
        ("PUT", of("projects/p/cluster"), r#"{"cluster":"c"}"#),
        ("DELETE", of("projects/p/cluster"), ""),
        ("PUT", of("control/freeze"), r#"{"reason":"x"}"#),
        ("DELETE", of("control/freeze?reason=x"), ""),
        ("POST", of("keys"), r#"{"name":"k","role":"viewer"}"#),
        ("DELETE", of("projects/p"), ""),
        ("DELETE", of(&format!("resources/{resource}")), ""),
    ];
    for (method, path, body) in asked {
        let answer = world.ask(method, &path, KEY, body).await;
        assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
        let pattern = path.split('?').next().unwrap().strip_prefix("/api/v1").unwrap();
        let route = slipway_server::TABLE.iter().find(|route| {
            let fits = |(a, b): (&str, &str)| a == b || a.starts_with('{');
            route.method == method
                && route.path.split('/').count() == pattern.split('/').count()
                && route.path.split('/').zip(pattern.split('/')).all(fits)
        });
        let verb = route.and_then(|route| route.audit).expect("a row with a verb");
        let found = world.get(&format!("/api/v1/audit?limit=1&verb={verb}")).await.json();
        assert_eq!(found[0]["actor"], "key:admin", "{method} {path} is audited as {verb}");
    }
}
