//! Reads the audit, and checks that the table says what is audited.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::{Value, json};
use slipway_core::access::audit::Actor;
use slipway_core::deletion::leak::FindingKind;
use slipway_core::ids::SubscriptionId;
use slipway_core::operations::control;
use slipway_server::{Route, TABLE};
use sqlx::Connection as _;

use crate::leaks::leaked;
use crate::nodes::enrolled;
use crate::orphan;
use crate::tenants;
use crate::topology;
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
    assert_eq!(world.get("/api/v1/audit/export?actor=key:nobody").await.text, "");
}

/// A slow reader does not outlive its key: once the key is revoked or rotated,
/// it gets the page in progress and then the export breaks off.
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
            ("id=", "id"),
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

/// Calls every audited route of the table, and finds the verb of its operation
/// in the audit.
#[tokio::test]
async fn rows_are_audited_by_their_verb() {
    let world = World::new().await;
    let mut open = audited_rows();
    let mut ask = async |method: &str, path: &str, body: &str| {
        let answer = world.ask(method, &format!("/api/v1{path}"), KEY, body).await;
        assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
        let pattern: Vec<_> = path.split('?').next().unwrap().split('/').collect();
        let fits = |route: &&Route| {
            let parts: Vec<_> = route.path.split('/').collect();
            let same = |(a, b): (&&str, &&str)| a == b || a.starts_with('{');
            route.method == method
                && parts.len() == pattern.len()
                && parts.iter().zip(&pattern).all(same)
        };
        let route = TABLE.iter().find(fits).expect("a row");
        let verb = route.terms().audit.expect("a row with a verb");
        open.remove(&(route.method, route.path));
        let found = world.get(&format!("/api/v1/audit?limit=1&verb={verb}")).await.json();
        assert_eq!(found[0]["actor"], "key:admin", "{method} {path} is audited as {verb}");
        // A 204 has no document.
        serde_json::from_str::<Value>(&answer.text).unwrap_or_default()
    };
    let id = |document: &Value| document["id"].as_str().unwrap().to_owned();
    let why = r#"{"reason":"x"}"#;

    ask("POST", "/projects", r#"{"name":"p"}"#).await;
    ask("PATCH", "/projects/p", r#"{"labels":{}}"#).await;
    ask("POST", "/clouds", r#"{"name":"c","provider":"p"}"#).await;
    ask("PATCH", "/clouds/c", r#"{"endpoint":{}}"#).await;
    let credential = id(&ask("POST", "/credentials", r#"{"cloud":"c","name":"x"}"#).await);
    ask("PATCH", &format!("/credentials/{credential}"), r#"{"kv_path":"y"}"#).await;
    ask("PUT", &format!("/projects/p/credentials/{credential}"), "").await;
    ask("DELETE", &format!("/projects/p/credentials/{credential}"), "").await;
    ask("DELETE", &format!("/credentials/{credential}"), "").await;
    ask("DELETE", "/clouds/c", "").await;
    ask("POST", "/blueprints", r#"{"slug":"s","display_name":"S","engine":"local"}"#).await;
    ask("PATCH", "/blueprints/s", r#"{"display_name":"T"}"#).await;
    let version = json!({
        "version": "v1", "injection_strategy": "cloud-init-user-data",
        "provider_kinds": ["local"], "mesh_role": "standalone",
        "parameter_schema": { "parameters": [] },
    });
    ask("POST", "/blueprints/s/versions", &version.to_string()).await;
    ask("POST", "/blueprints/s/versions/v1/retire", "").await;
    world.declare("upgraded").await;
    let second = json!({
        "version": "v2", "injection_strategy": "cloud-init-user-data",
        "provider_kinds": ["local"], "parameter_schema": { "parameters": [] },
    });
    world.create("/api/v1/blueprints/local-node/versions", &second).await;
    let to = r#"{"to":"v2"}"#;
    ask("POST", "/blueprints/local-node/upgrade", to).await;
    ask("POST", "/rollouts/local-node/pause", "{}").await;
    ask("POST", "/rollouts/local-node/resume", "{}").await;
    ask("POST", "/rollouts/local-node/abort", "{}").await;
    ask("POST", "/blueprints/local-node/upgrade", to).await;
    ask("POST", "/rollouts/local-node/roll-back", "{}").await;
    ask("DELETE", "/blueprints/s", "").await;
    ask("POST", "/labels", r#"{"key":"k"}"#).await;
    ask("PATCH", "/labels/k", r#"{"propagate":true}"#).await;
    let purged = id(&ask("DELETE", "/labels/k", "").await);
    let force = r#"{"reason":"x","force":true}"#;
    ask("POST", &format!("/deletions/{purged}/purge"), force).await;
    let made = world.create("/api/v1/generators", &json!({ "name": "g" })).await;
    let generator = &made["generator"]["id"];
    let stack = json!({ "name": "s", "generator_id": generator });
    let stack = id(&world.create("/api/v1/stacks", &stack).await);
    world.ask("DELETE", &format!("/api/v1/stacks/{stack}"), KEY, "").await;
    let many =
        json!({ "generator_id": generator, "name_prefix": "s", "reason": "x", "force": true });
    ask("POST", "/deletion-purges", &many.to_string()).await;
    ask("PUT", "/deletion-settings/-/label", r#"{"approve_above":1}"#).await;
    ask("DELETE", "/deletion-settings/-/label", "").await;
    ask("POST", "/clusters", r#"{"name":"c","engine":"local"}"#).await;
    ask("PATCH", "/clusters/c", r#"{"region":"eu"}"#).await;
    ask("POST", "/clusters", r#"{"name":"d","engine":"local"}"#).await;
    ask("DELETE", "/clusters/d", "").await;
    ask("PUT", "/projects/p/cluster", r#"{"cluster":"c"}"#).await;
    // The placement loop made something there, and could not remove it in time.
    execute(&world, "UPDATE cluster_assignments SET namespace_phase = 'Degraded'").await;
    ask("DELETE", "/projects/p/cluster", "").await;
    let long_ago = "UPDATE cluster_assignments SET withdrawn_at = 1 WHERE withdrawn_at > 1";
    execute(&world, long_ago).await;
    ask("POST", "/projects/p/cluster/abandon", r#"{"reason":"x","confirm":"p"}"#).await;
    execute(&world, "UPDATE cluster_assignments SET namespace_phase = 'Ready'").await;
    let deletion = ask("DELETE", "/projects/p", "").await;
    ask("POST", &format!("/deletions/{}/restore", id(&deletion)), "{}").await;

    let resource = ask("POST", "/resources", r#"{"handle":"a","blueprint":"local-node"}"#).await;
    let failed = id(&resource);
    ask("PATCH", &format!("/resources/{failed}"), r#"{"labels":{"a":"b"}}"#).await;
    world.set_phase(&failed, "Failed").await;
    ask("POST", &format!("/resources/{failed}/retry"), why).await;
    let replaced = world.declare("replaced").await;
    ask("POST", &format!("/resources/{replaced}/replace"), why).await;
    let planner = r#"{"name":"planner","role":"operator","owner":"planner"}"#;
    let planner = world.post("/api/v1/keys", planner).await.json();
    // As if the admin had not made it.
    execute(&world, "UPDATE api_keys SET created_by = NULL WHERE name = 'planner'").await;
    let (key, body) = (planner["key"].as_str().unwrap(), r#"{"kind":"resource","reference":"a"}"#);
    let plan = id(&world.ask("POST", "/api/v1/deletion-plans", key, body).await.json());
    ask("POST", &format!("/deletion-plans/{plan}/approve"), why).await;
    let (silent, _, _) = enrolled(&world, "d").await;
    world.set_phase(&silent, "Ready").await;
    ask("POST", &format!("/resources/{silent}/reenrol"), why).await;
    let (leaving, _, _) = enrolled(&world, "b").await;
    let protection = format!("/protections/resource/{leaving}");
    ask("PUT", &protection, why).await;
    ask("POST", &format!("{protection}/lift"), r#"{"reason":"x","seconds":60}"#).await;
    ask("DELETE", &protection, "").await;
    let grace = format!("/api/v1/resources/{leaving}?grace=1h");
    let scheduled = id(&world.ask("DELETE", &grace, KEY, "").await.json());
    ask("POST", &format!("/deletions/{scheduled}/cancel"), "{}").await;
    ask("DELETE", &format!("/resources/{leaving}"), "").await;
    ask("POST", &format!("/resources/{leaving}/force-drain"), why).await;
    execute(&world, "UPDATE deletion_brakes SET tripped_at = 1, tripped_why = 'x'").await;
    ask("POST", "/brakes/admin/release", why).await;
    // Nobody has claimed it for a long time.
    execute(&world, "UPDATE provisioned_resources SET due_at = 1").await;
    let lost = format!("/resources/{leaving}/abandon");
    ask("POST", &lost, r#"{"reason":"x","confirm":"b"}"#).await;
    let machine = by_hand(&world, "m").await;
    ask("DELETE", &format!("/resources/{machine}"), "").await;
    ask("POST", &format!("/resources/{machine}/confirm-gone"), why).await;
    let waiting = world.declare("c").await;
    world.set_phase(&waiting, "Enrolling").await;
    let token = ask("POST", &format!("/resources/{waiting}/tokens"), "{}").await;
    ask("DELETE", &format!("/tokens/{}", token["token_id"].as_str().unwrap()), "").await;

    let removed = leaked(&world, FindingKind::UnclaimedObject).await;
    ask("POST", &format!("/leaks/{removed}/remove"), why).await;
    let gone = leaked_somewhere(&world).await;
    ask("POST", &format!("/leaks/{gone}/resolve"), why).await;

    let settings = r#"{"name":"files","settings":{"engine":"sqlite","target":{"file":"/x"}}}"#;
    ask("POST", "/tenant-profiles", settings).await;
    ask("PATCH", "/tenant-profiles/files", r#"{"description":"y"}"#).await;
    let tenant = r#"{"name":"acme","profile":"files"}"#;
    let tenant = id(&ask("POST", "/projects/p/tenants", tenant).await);
    tenants::fail(&world, &tenant).await;
    ask("POST", &format!("/tenants/{tenant}/retry"), "").await;
    tenants::fail(&world, &tenant).await;
    ask("POST", "/tenants/retry", r#"{"profile":"files"}"#).await;
    tenants::fail(&world, &tenant).await;
    ask("DELETE", &format!("/tenants/{tenant}"), "").await;
    let second = r#"{"name":"second","profile":"files"}"#;
    let second = id(&ask("POST", "/projects/p/tenants", second).await);
    tenants::ready(&world, &second).await;
    ask("POST", &format!("/tenants/{second}/export"), "").await;
    let repair = r#"{"version":"3","found":"applied"}"#;
    ask("POST", &format!("/tenants/{second}/repair"), repair).await;
    tenants::stuck(&world, &second).await;
    let repair = r#"{"profile":"files","version":"3","found":"applied"}"#;
    ask("POST", "/tenants/repair", repair).await;
    tenants::target_ahead(&world, &second).await;
    ask("POST", &format!("/tenants/{second}/resume"), why).await;
    ask("POST", "/tenant-profiles/files/migrate", "{}").await;
    ask("POST", "/tenant-profiles", r#"{"name":"gone","settings":{"engine":"sqlite"}}"#).await;
    ask("DELETE", "/tenant-profiles/gone", "").await;

    topology::cluster(&world, "default", "w").await;
    ask("POST", "/workspaces/w/groups/w-w/scale-up", r#"{"by":1}"#).await;
    ask("POST", "/workspaces/w/groups/w-w/scale-down", r#"{"by":1}"#).await;
    ask("POST", "/workspaces/w/servers/w-w-1/mark", r#"{"marked":true}"#).await;
    ask("POST", "/workspaces/w/servers/w-w-1/scale-down", why).await;
    ask("POST", "/workspaces/w/servers/w-w-2/replace", why).await;
    ask("DELETE", "/workspaces/w/servers/w-w-3?reason=x", "").await;
    ask("POST", "/workspaces/w/pause", why).await;
    ask("POST", "/workspaces/w/resume", why).await;
    ask("POST", "/workspaces/w/teardown", r#"{"confirm":"w","reason":"x","break_glass":true}"#)
        .await;
    ask("POST", "/workspaces/w/cancel", why).await;
    topology::apply(&world, "default", "empty", &[]).await;
    ask("DELETE", "/workspaces/empty", "").await;

    let key = id(&ask("POST", "/keys", r#"{"name":"k","role":"viewer"}"#).await);
    ask("POST", &format!("/keys/{key}/rotate"), "{}").await;
    ask("DELETE", &format!("/keys/{key}"), "").await;
    let subscription = SubscriptionId::new(world.context.entropy.uuid());
    world.context.stores.events.subscription_open(subscription, "sink").await.unwrap();
    ask("DELETE", "/subscriptions/sink", "").await;

    ask("PUT", "/control/freeze", why).await;
    ask("DELETE", "/control/freeze?reason=x", "").await;
    let observe = &mut |locked: &control::LockedControl| {
        Ok(control::observe(&locked.control, "a restore", &Actor::new("test")))
    };
    world.context.stores.operations.control_decide(observe).await.unwrap();
    ask("POST", "/control/resume", why).await;

    let orphaned = orphan::a_row_that_is_audited().await;
    assert!(open.remove(&orphaned), "{orphaned:?}");

    assert!(open.is_empty(), "rows whose audit verb this test does not prove: {open:?}");
}

/// A resource of engine manual, in a project of its own.
async fn by_hand(world: &World, handle: &str) -> String {
    let credentials = world.get("/api/v1/credentials").await.json();
    let credential = credentials[0]["id"].as_str().unwrap();
    world.create("/api/v1/projects", &json!({ "name": "metal" })).await;
    world.create("/api/v1/clusters", &json!({ "name": "by-hand", "engine": "manual" })).await;
    for (path, body) in [
        (format!("credentials/{credential}"), ""),
        ("cluster".to_owned(), r#"{"cluster":"by-hand"}"#),
    ] {
        let path = format!("/api/v1/projects/metal/{path}");
        let answer = world.ask("PUT", &path, KEY, body).await;
        assert!(answer.status.is_success(), "{answer:?}");
    }
    let body = json!({ "project": "metal", "handle": handle, "blueprint": "manual-node" });
    let answer = world.post("/api/v1/resources", &body.to_string()).await;
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Those of Fleet are proven where each of them is used.
fn audited_rows() -> BTreeSet<(&'static str, &'static str)> {
    let audited = TABLE.iter().filter(|route| {
        route.terms().audit.is_some() && !format!("{:?}", route.operation).starts_with("Fleet")
    });
    audited.map(|route| (route.method, route.path)).collect()
}

/// A leak whose object can no longer be located, so that a person may resolve it.
async fn leaked_somewhere(world: &World) -> String {
    let id = leaked(world, FindingKind::MissingObject).await;
    execute(world, "UPDATE leak_records SET cluster_id = NULL WHERE kind = 'missing_object'").await;
    id
}

/// Brings rows to where only time or a loop would.
async fn execute(world: &World, statement: &'static str) {
    let url = format!("sqlite:{}", world.file.display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query(statement).execute(&mut connection).await.unwrap();
}
