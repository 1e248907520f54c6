//! Walks the table of routes: who gets in, who does not, and what keys that are
//! bound to a project see.

use serde_json::{Value, json};
use slipway_app::access::authorise::Terms;
use slipway_core::access::role::{Role, Scope};
use slipway_server::{Route, TABLE};
use sqlx::Connection as _;

use crate::world::{KEY, World};

const ID: &str = "0192f0c1-2b3c-7d4e-8f50-123456789abc";

impl World {
    /// Makes a key over the API; returns its id and its text.
    pub(crate) async fn key(
        &self,
        name: &str,
        role: Role,
        project: Option<&str>,
    ) -> (String, String) {
        let body = json!({ "name": name, "role": role, "project": project });
        let made = self.create("/api/v1/keys", &body).await;
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        (text("id"), text("key"))
    }

    /// Makes a project in which resources can be declared.
    pub(crate) async fn project(&self, name: &str) -> String {
        let made = self.create("/api/v1/projects", &json!({ "name": name })).await;
        let credential = json!({ "cloud": "local", "name": name });
        let credential = self.create("/api/v1/credentials", &credential).await;
        let credential = credential["id"].as_str().unwrap();
        let path = format!("/api/v1/projects/{name}/credentials/{credential}");
        assert_eq!(self.ask("PUT", &path, KEY, "").await.status.as_u16(), 204);
        let path = format!("/api/v1/projects/{name}/cluster");
        let placed = self.ask("PUT", &path, KEY, r#"{"cluster":"local"}"#).await;
        assert_eq!(placed.status.as_u16(), 200, "{placed:?}");
        made["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn declare_in(&self, project: &str, handle: &str) -> String {
        let body = json!({ "handle": handle, "blueprint": "local-node", "project": project });
        let answer = self.post("/api/v1/resources", &body.to_string()).await;
        assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    async fn count(&self, path: &str, key: &str) -> usize {
        let answer = self.ask("GET", path, key, "").await;
        assert_eq!(answer.status.as_u16(), 200, "{path}: {answer:?}");
        answer.json().as_array().unwrap().len()
    }
}

/// The path with every parameter replaced.
fn fill(route: &Route, parameter: &str) -> String {
    let segments = route.path.split('/');
    let filled = segments.map(|part| match part {
        // It takes one of a few words and refuses any other.
        "{kind}" => "resource",
        part if part.starts_with('{') => parameter,
        part => part,
    });
    format!("/api/v1{}", filled.collect::<Vec<_>>().join("/"))
}

#[tokio::test]
async fn every_route_of_the_table_wants_a_good_key_before_anything_else() {
    let world = World::new().await;
    let (_, expired) = world.key("expired", Role::Admin, None).await;
    let (revoked_id, revoked) = world.key("revoked", Role::Admin, None).await;
    world.project("doomed").await;
    let (_, orphaned) = world.key("orphaned", Role::Admin, Some("doomed")).await;
    let path = format!("/api/v1/keys/{revoked_id}");
    assert_eq!(world.ask("DELETE", &path, KEY, "").await.status.as_u16(), 204);
    assert_eq!(world.ask("DELETE", "/api/v1/projects/doomed", KEY, "").await.status.as_u16(), 200);
    let mut connection =
        sqlx::SqliteConnection::connect(&format!("sqlite:{}", world.file.display())).await.unwrap();
    // The clock of this world is fixed in January.
    sqlx::query("UPDATE api_keys SET expires_at = 1000000 WHERE name = 'expired'")
        .execute(&mut connection)
        .await
        .unwrap();
    let wrong_secret = "slipway_12345678_zzzzzzzzzzzzzzzzzzzzzzzzz";
    assert!(TABLE.len() > 60, "the table is not whole");
    for route in TABLE.iter() {
        // An invalid id, an unknown query and a body that does not parse: the
        // server must check the key before any of them.
        for path in [fill(route, ID), format!("{}?nonsense=1", fill(route, "x"))] {
            for key in ["", "nonsense", wrong_secret, &expired, &revoked, &orphaned] {
                let answer = world.ask(route.method, &path, key, "{").await;
                answer.refused(401, "unauthenticated");
                assert_eq!(answer.header("content-type"), "application/problem+json");
                assert_eq!(answer.header("www-authenticate"), "Bearer");
            }
        }
    }
}

/// Every role, bound and not, on every route. A caller without the right gets
/// 403 whatever the request is; one with the right gets an error about the
/// request, which also proves that the use-case behind it agrees with the
/// table.
#[tokio::test]
async fn every_route_takes_the_roles_that_its_row_names() {
    let world = World::new().await;
    for &role in Role::ALL {
        for project in [None, Some("default")] {
            let name = format!("{role}-{}", project.unwrap_or("all"));
            let (_, key) = world.key(&name, role, project).await;
            for route in TABLE.iter() {
                let Terms { least, reach, audit, .. } = route.terms();
                let bound = project.is_some() && reach == Scope::Installation;
                let allowed = role >= least && !bound;
                let context = format!("{} {} as {name}", route.method, route.path);
                for path in [fill(route, ID), format!("{}?nonsense=1", fill(route, "x"))] {
                    // An allowed stream would wait for its first event.
                    if allowed && route.path == "/events/stream" && !path.contains('?') {
                        continue;
                    }
                    let answer = world.ask(route.method, &path, &key, "{").await;
                    let status = answer.status.as_u16();
                    assert_eq!(status == 403, !allowed, "{context}: {answer:?}");
                    let expected = status < 500 || (status == 501 && is_outside(route));
                    assert!(status != 401 && expected, "{context}: {answer:?}");
                    if !allowed {
                        answer.refused(403, "forbidden");
                    }
                }
                // Down to the use-case: these requests need no body.
                let needs_more =
                    ["/events/stream", "/deletion-plans", "/apply", "/documents", "/agents/"]
                        .contains(&route.path)
                        || (route.method != "GET" && route.path.starts_with("/apply-sources"))
                        || (route.method != "GET" && changes_nothing(route))
                        || is_outside(route);
                if allowed && audit.is_none() && !needs_more {
                    let answer = world.ask(route.method, &fill(route, ID), &key, "").await;
                    let expected = if route.path.contains('{') { [404, 404] } else { [200, 503] };
                    assert!(expected.contains(&answer.status.as_u16()), "{context}: {answer:?}");
                }
            }
        }
    }
}

/// What agents repeat with every poll is no change that somebody made, and neither is a preview.
fn changes_nothing(route: &Route) -> bool {
    if route.path == "/templates/{id}/render" {
        return true;
    }
    ["heartbeat", "events", "health-status", "prune-refusal"]
        .iter()
        .any(|what| route.path == format!("/agents/{{id}}/{what}"))
}

/// What Fleet's protocol has and this server does not.
fn is_outside(route: &Route) -> bool {
    let outside = ["/webhook", "/work-order", "/diagnostics", "/admin/config"];
    outside.iter().any(|start| route.path.starts_with(start))
        || (route.method == "POST" && route.path.ends_with("/diagnostics"))
}

/// A route that changes something is audited, and one that changes nothing has no verb.
#[test]
fn rows_are_unique_and_those_that_write_are_audited() {
    let mut seen = std::collections::BTreeSet::new();
    for route in TABLE.iter() {
        assert!(seen.insert((route.path, route.method)), "{} {}", route.method, route.path);
        // The scan for leaks records its findings under its own name; a plan changes nothing;
        // what documents change is audited by the use-case of each object.
        let by_others = ["/leaks/find", "/deletion-plans", "/apply", "/documents"];
        let reads = route.method == "GET"
            || by_others.contains(&route.path)
            || (changes_nothing(route) || is_outside(route) || route.path == "/auth/pak")
            || route.path.starts_with("/apply-sources");
        let Terms { least, audit, .. } = route.terms();
        assert_eq!(audit.is_none(), reads, "{} {}", route.method, route.path);
        assert!(reads || least > Role::Viewer, "{} {}", route.method, route.path);
    }
}

/// The documented table is the served one.
#[test]
fn the_page_about_security_shows_the_table() {
    let page = include_str!("../../../../docs/access.md");
    let (_, rest) = page.split_once("<!-- routes -->\n").unwrap();
    let (shown, _) = rest.split_once("<!-- /routes -->").unwrap();
    let mut expected = String::from(
        "| method | path below `/api/v1` | least role | also | reach | audited as |\n|---|---|---|---|---|---|\n",
    );
    for route in TABLE.iter() {
        let (Route { method, path, .. }, Terms { least, reach, audit, principals }) =
            (route, route.terms());
        let also = principals.join(", ");
        let audit = audit.map(|verb| format!("`{verb}` ")).unwrap_or_default();
        let also = if also.is_empty() { String::new() } else { format!("{also} ") };
        expected.push_str(&format!("| {method} | {path} | {least} | {also}| {reach} | {audit}|\n"));
    }
    assert_eq!(shown, expected, "put this between the marks of docs/access.md:\n{expected}");
}

/// A refusal does not reveal whether foreign credentials and keys exist.
#[tokio::test]
async fn a_bound_key_learns_nothing_of_what_is_not_its_own() {
    let world = World::new().await;
    world.project("own").await;
    let (_, key) = world.key("bound", Role::Admin, Some("own")).await;
    let body = json!({ "cloud": "local", "name": "secret-store" });
    let id = world.create("/api/v1/credentials", &body).await["id"].as_str().unwrap().to_owned();
    let unknown = "0192f0c1-2b3c-7d4e-8f50-123456789abc";
    for credential in ["secret-store", "no-such", id.as_str(), unknown] {
        let body = json!({
            "handle": "web-9", "blueprint": "local-node", "credential": credential,
        });
        let answer = world.ask("POST", "/api/v1/resources", &key, &body.to_string()).await;
        assert_eq!(answer.refused(422, "credential_not_found").as_deref(), Some("credential"));
        let told = answer.text.replace(credential, "");
        assert!(!told.contains("secret-store") && !told.contains(&id), "{told}");
    }
    let body = json!({ "name": "admin", "role": "viewer" }).to_string();
    let answer = world.ask("POST", "/api/v1/keys", &key, &body).await;
    answer.refused(409, "name_taken");
    assert_eq!(answer.json()["details"], json!({ "field": "name" }), "and no id");
    assert!(!answer.text.contains("used any more"), "nor its state: {}", answer.text);
}

#[tokio::test]
async fn a_bound_key_meets_its_own_project_and_nothing_else() {
    let world = World::new().await;
    let (own, foreign) = (world.project("own").await, world.project("foreign").await);
    let mine = world.declare_in("own", "a").await;
    let theirs = world.declare_in("foreign", "a").await;
    let (_, key) = world.key("bound", Role::Admin, Some("own")).await;
    let (other, _) = world.key("other", Role::Viewer, Some("foreign")).await;
    let tokens = [world.mint_token(&mine).await, world.mint_token(&theirs).await];
    let mut nodes = Vec::new();
    for token in tokens {
        let body =
            json!({ "token": token, "public_key": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=" });
        let answer = world.ask("POST", "/v1/register", "", &body.to_string()).await;
        assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
        nodes.push(answer.json()["node_id"].as_str().unwrap().to_owned());
    }
    let mut deletions = Vec::new();
    for resource in [&mine, &theirs] {
        let answer = world.ask("DELETE", &format!("/api/v1/resources/{resource}"), KEY, "").await;
        deletions.push(answer.json()["id"].as_str().unwrap().to_owned());
    }
    world.relay().await;

    // Lists show what is in reach: everything to a key that reaches everything.
    for (path, all, bound) in [
        ("/api/v1/resources?show_deleted=true", 2, 1),
        ("/api/v1/resources?project=own", 1, 1),
        ("/api/v1/nodes", 2, 1),
        ("/api/v1/deletions", 2, 1),
        ("/api/v1/projects", 3, 1),
        ("/api/v1/keys", 3, 1),
        ("/api/v1/events", 6, 3),
        ("/api/v1/audit?verb=resource.declare", 2, 1),
    ] {
        assert_eq!(world.count(path, KEY).await, all, "{path}");
        assert_eq!(world.count(path, &key).await, bound, "{path}");
    }
    // A foreign project in a filter is as unknown as one that does not exist.
    for path in ["/api/v1/resources?project=", "/api/v1/audit?verb=resource.declare&project="] {
        assert_eq!(world.count(&format!("{path}foreign"), KEY).await, 1, "{path}");
        for (project, key) in [("foreign", key.as_str()), ("nowhere", &key), ("nowhere", KEY)] {
            let answer = world.ask("GET", &format!("{path}{project}"), key, "").await;
            answer.refused(422, "project_not_found");
            assert_eq!(answer.json()["message"], format!("there is no project `{project}`"));
        }
    }

    // Foreign objects answer exactly like objects that do not exist.
    let same = async |method: &str, foreign: &str, unknown: &str, body: &str| {
        let [met, missed] = [
            world.ask(method, foreign, &key, body).await,
            world.ask(method, unknown, &key, body).await,
        ];
        assert_eq!(met.status, missed.status, "{method} {foreign}: {met:?} {missed:?}");
        assert_eq!(met.json()["code"], missed.json()["code"], "{method} {foreign}");
        let (foreign, unknown) = (foreign.rsplit('/'), unknown.rsplit('/'));
        // Except for the words that the caller sent.
        let mut texts =
            [met, missed].map(|answer| answer.json()["detail"].as_str().unwrap().to_owned());
        for (a, b) in foreign.zip(unknown) {
            texts[0] = texts[0].replace(a, b);
        }
        assert_eq!(texts[0], texts[1], "{method}");
        texts
    };
    let reason = r#"{"reason":"x"}"#;
    for (method, tail, body) in [
        ("GET", "", ""),
        ("GET", "/explain", ""),
        ("PATCH", "", r#"{"labels":{}}"#),
        ("PATCH", "?dry_run=true", r#"{"version":"v1"}"#),
        ("DELETE", "", ""),
        ("POST", "/retry", reason),
        ("POST", "/replace", reason),
        ("POST", "/force-drain", reason),
        ("GET", "/tokens", ""),
        ("POST", "/tokens", "{}"),
    ] {
        let path = |id: &str| format!("/api/v1/resources/{id}{tail}");
        same(method, &path(&theirs), &path(ID), body).await;
        let own = world.ask(method, &path(&mine), &key, body).await;
        assert_ne!(own.status.as_u16(), 404, "{method} {tail}: {own:?}");
    }
    for (method, kind, theirs, body) in [
        ("GET", "nodes", &nodes[1], ""),
        ("GET", "deletions", &deletions[1], ""),
        ("GET", "keys", &other, ""),
        ("DELETE", "keys", &other, ""),
        ("GET", "projects", &foreign, ""),
        ("PATCH", "projects", &foreign, r#"{"labels":{}}"#),
    ] {
        let path = |id: &str| format!("/api/v1/{kind}/{id}");
        same(method, &path(theirs), &path(ID), body).await;
    }
    let rotate = |id: &str| format!("/api/v1/keys/{id}/rotate");
    same("POST", &rotate(&other), &rotate(ID), "{}").await;
    for tail in ["credentials", "cluster"] {
        let path = |id: &str| format!("/api/v1/projects/{id}/{tail}");
        same("GET", &path(&foreign), &path(ID), "").await;
        assert_eq!(world.ask("GET", &path("own"), &key, "").await.status.as_u16(), 200, "{tail}");
    }
    for (path, mine) in [("nodes", &nodes[0]), ("deletions", &deletions[0]), ("projects", &own)] {
        let answer = world.ask("GET", &format!("/api/v1/{path}/{mine}"), &key, "").await;
        assert_eq!(answer.status.as_u16(), 200, "{path}: {answer:?}");
    }

    // Declaring works in one's own project without naming it; another's project
    // answers like a missing one.
    let declare = async |project: Value| {
        let body = json!({ "handle": "b", "blueprint": "local-node", "project": project });
        world.ask("POST", "/api/v1/resources", &key, &body.to_string()).await
    };
    for elsewhere in ["foreign", "nowhere", foreign.as_str()] {
        let answer = declare(json!(elsewhere)).await;
        assert_eq!(answer.refused(422, "project_not_found").as_deref(), Some("project"));
    }
    let declared = declare(Value::Null).await;
    assert_eq!(declared.status.as_u16(), 202, "{declared:?}");
    assert_eq!(declared.json()["project_id"], own.as_str());

    // A bound key can make keys of its own project, which reach no further.
    let made = world.ask("POST", "/api/v1/keys", &key, r#"{"name":"more","role":"admin"}"#).await;
    assert_eq!(made.json()["project_id"], own.as_str(), "{made:?}");
    let body = r#"{"name":"far","role":"viewer","project":"foreign"}"#;
    let answer = world.ask("POST", "/api/v1/keys", &key, body).await;
    answer.refused(422, "project_not_found");

    // The name of a cloud is visible to everybody, its endpoint is not.
    let endpoint = json!({ "name": "far", "provider": "p", "endpoint": { "url": "https://x" } });
    world.create("/api/v1/clouds", &endpoint).await;
    let seen = |key| world.ask("GET", "/api/v1/clouds/far", key, "");
    assert_eq!(seen(&key).await.json()["endpoint"], json!({}));
    assert_eq!(seen(KEY).await.json()["endpoint"]["url"], "https://x");
}
