//! Both generations of plexd, replayed through the real router: bodies as their
//! agents send them, and every code with which a register can be refused. We
//! wrote the bodies after the published fields.

use std::time::Duration;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::{Value, json};
use slipway_core::nodes::token::TokenKind;
use uuid::Uuid;

use crate::world::{Answer, KEY, World};

const PROJECT: &str = "/api/v1/projects/default";

/// Generation A, as its agent sends it: the token twice, and capabilities that
/// describe the agent.
fn older(token: &str, key: u8) -> Value {
    json!({
        "token": token,
        "public_key": BASE64.encode(&[key; 32]),
        "hostname": format!("older-{key}.example"),
        "metadata": { "region": "eu", "rack": "7" },
        "capabilities": {
            "binary": { "version": "0.9.1", "checksum": "sha256:a1" },
            "builtin_actions": [
                { "name": "restart", "description": "of a unit", "parameters": [
                    { "name": "unit", "type": "string", "required": true, "description": "" },
                ] },
                { "name": "drain", "description": "of something else", "parameters": null },
            ],
            "hooks": null,
        },
    })
}

/// Generation B.
fn newer(token: &str, key: u8, handle: &str, project: &str) -> Value {
    json!({
        "project_id": project,
        "resource_handle": handle,
        "bootstrap_token": token,
        "nonce": format!("nonce-{key}"),
        "public_key": BASE64.encode(&[key; 32]),
    })
}

async fn register(world: &World, bearer: &str, body: &Value) -> Answer {
    world.ask("POST", "/v1/register", bearer, &body.to_string()).await
}

async fn project_id(world: &World) -> String {
    world.get(PROJECT).await.json()["id"].as_str().unwrap().to_owned()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}"))
}

#[tokio::test]
async fn the_older_generation_lives_from_register_to_deregister() {
    let world = World::new().await;
    let token = world.mint_token(&world.declare("web-1").await).await;
    let answer = register(&world, &token, &older(&token, 7)).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    let reply = answer.json();
    assert_eq!((text(&reply, "mesh_ip"), &reply["peers"]), ("100.64.0.2", &json!([])));
    let (node, bearer) = (text(&reply, "node_id"), text(&reply, "node_secret_key"));
    let path = |verb: &str| format!("/v1/nodes/{node}/{verb}");

    let fresh = world.ask("GET", &path("state"), bearer, "").await.json();
    assert_eq!(fresh["reachability"]["state"], "never_reported");
    let heartbeat = json!({
        "node_id": node, "timestamp": "2026-01-31T12:00:00Z", "status": "healthy",
        "uptime": "1h2m3s", "binary_checksum": "sha256:a2",
        "mesh": { "interface": "plexd0", "peer_count": 0, "listen_port": 51820 },
    });
    let answer = world.ask("POST", &path("heartbeat"), bearer, &heartbeat.to_string()).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["reconcile"]), (200, &false.into()));

    let state = world.ask("GET", &path("state"), bearer, "").await.json();
    for (block, empty) in [
        ("peers", json!([])),
        ("policies", json!([])),
        ("metadata", json!({})),
        ("data", json!([])),
        ("secret_refs", json!([])),
    ] {
        assert_eq!(state[block], empty, "{block}");
    }
    assert_eq!(state["signing_keys"]["current"], reply["signing_public_key"]);

    let shown = world.get(&format!("/api/v1/nodes/{node}")).await.json();
    assert_eq!(shown["capabilities"], json!(["action:restart", "action:drain"]));
    for (fact, value) in [
        ("hostname", "older-7.example"),
        ("mesh_ip", "100.64.0.2"),
        ("version", "0.9.1"),
        ("checksum", "sha256:a2"),
        ("status", "healthy"),
    ] {
        assert_eq!(text(&shown, fact), value, "{fact}");
    }

    let answer = world.ask("POST", &path("deregister"), bearer, "").await;
    assert_eq!(answer.status.as_u16(), 204, "{answer:?}");
    for (method, verb) in [("POST", "heartbeat"), ("GET", "state"), ("GET", "events")] {
        let answer = world.ask(method, &path(verb), bearer, "").await;
        assert_eq!(answer.status.as_u16(), 401, "{verb}: its key is revoked");
    }
}

#[tokio::test]
async fn the_newer_generation_builds_its_bearer_and_sees_its_peers() {
    let world = World::new().await;
    let token = world.mint_token(&world.declare("web-1").await).await;
    let first = register(&world, &token, &older(&token, 7)).await.json();
    let resource = world.declare("web-2").await;
    let token = world.mint_token(&resource).await;
    let mut body = newer(&token, 8, "web-2", &project_id(&world).await);
    body["requested_resource_id"] = resource.as_str().into();
    // Without an Authorization header.
    let answer = register(&world, "", &body).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    let reply = answer.json();
    assert_eq!(text(&reply, "domain_mesh_cidr"), "100.64.0.0/10");
    assert_eq!((text(&reply, "mesh_ip"), text(&reply, "signing_key_id")), ("100.64.0.3", "key-1"));
    let peer = json!({
        "id": first["node_id"], "node_id": first["node_id"], "mesh_ip": "100.64.0.2",
        "public_key": BASE64.encode(&[7; 32]), "hostname": "older-7.example",
        "endpoint": "", "allowed_ips": ["100.64.0.2/32"], "psk": "",
    });
    assert_eq!((&reply["peer_snapshot"], &reply["peers"]), (&json!([peer]), &json!([peer])));

    let node = text(&reply, "node_id");
    let nsk = BASE64.decode(text(&reply, "nsk").as_bytes()).unwrap();
    assert_eq!(nsk.len(), 32);
    let mut bytes = node.parse::<Uuid>().unwrap().as_bytes().to_vec();
    bytes.extend(nsk);
    let bearer = format!("nsk_live_{}", BASE64URL_NOPAD.encode(&bytes));
    let path = |verb: &str| format!("/v1/nodes/{node}/{verb}");
    let heartbeat = json!({
        "client_now": "2026-01-31T12:00:00Z", "binary_checksum": "sha256:b2",
        "binary_version": "2.0.0", "nat_summary": { "type": "unknown" },
    })
    .to_string();
    let bare = world.ask("POST", &path("heartbeat"), text(&reply, "nsk"), &heartbeat).await;
    assert_eq!((bare.status.as_u16(), &bare.json()["code"]), (401, &"unauthenticated".into()));
    let answer = world.ask("POST", &path("heartbeat"), &bearer, &heartbeat).await;
    assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
    let counted = answer.json();
    assert_eq!((&counted["reconcile"], &counted["rotate_keys"]), (&false.into(), &false.into()));
    assert!(text(&counted, "accepted_at").ends_with('Z'));

    let state = world.ask("GET", &path("state"), &bearer, "").await.json();
    assert_eq!(state["peers"], json!([peer]));
    for block in ["policy", "bridge", "state", "reports"] {
        assert_eq!(state.get(block), Some(&Value::Null), "{block} is there and not populated");
    }
    assert_eq!((&state["executions"], &state["sessions"]), (&json!([]), &json!([])));
    assert!(state["reachability"]["changed_at"].is_string());
    let events = world.ask("GET", &path("events"), &bearer, "").await;
    assert_eq!(events.status.as_u16(), 501);
    assert_eq!(events.json()["code"], "signed_event_bus_not_provisioned");
    let shown = world.get(&format!("/api/v1/nodes/{node}")).await.json();
    assert_eq!((text(&shown, "hostname"), text(&shown, "version")), ("web-2", "2.0.0"));
}

/// All refusals use one token, which still enrols a node in the end.
#[tokio::test]
async fn a_refused_register_names_its_code_and_consumes_nothing() {
    let world = World::new().await;
    let project = project_id(&world).await;
    let used = world.mint_token(&world.declare("web-1").await).await;
    let taken = register(&world, "", &newer(&used, 1, "web-1", &project)).await;
    assert_eq!(taken.status.as_u16(), 201, "{taken:?}");
    let token = world.mint_token(&world.declare("web-2").await).await;
    let good = newer(&token, 2, "web-2", &project);
    let foreign = Uuid::from_u128(77).to_string();
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    let long = "x".repeat(300);
    let table = [
        (with("public_key", json!("AAAA")), 400, "public_key_invalid"),
        (with("public_key", json!(BASE64.encode(&[0; 32]))), 400, "public_key_invalid"),
        (with("public_key", json!(7)), 400, "invalid_input"),
        (with("bootstrap_token", json!("psb_x")), 401, "token_invalid"),
        (with("bootstrap_token", json!(used)), 404, "resource_not_found"),
        (with("project_id", json!(foreign)), 403, "project_mismatch"),
        (with("project_id", json!("default")), 422, "registration_invalid"),
        (with("resource_handle", json!("web-1")), 404, "resource_not_found"),
        (with("requested_resource_id", json!(foreign)), 404, "resource_not_found"),
        (with("requested_resource_id", json!("x")), 422, "registration_invalid"),
        (with("hostname", json!(long)), 422, "registration_invalid"),
        (with("nonce", json!("a\nb")), 422, "registration_invalid"),
        (with("capabilities", json!(vec!["c"; 33])), 422, "registration_invalid"),
        (with("nonce", json!("nonce-1")), 403, "nonce_collision"),
    ];
    for (body, status, code) in table {
        let answer = register(&world, "", &body).await;
        assert_eq!(answer.status.as_u16(), status, "{body}: {answer:?}");
        assert_eq!(answer.json()["code"], code, "{body}");
    }
    let answer = register(&world, "", &good).await;
    assert_eq!(answer.status.as_u16(), 201, "nothing was consumed: {answer:?}");
    assert_eq!(answer.json()["mesh_ip"], "100.64.0.3", "nor any address");
}

#[tokio::test]
async fn a_token_that_enrols_nobody_says_why() {
    let world = World::new().await;
    let hour = Duration::from_secs(3_600);
    let resource = world.declare("web-1").await;
    let refused = async |token: &str, key: u8, code: &str| {
        let answer = register(&world, token, &older(token, key)).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (403, &code.into()));
    };
    let bridge = world.mint_token_of(&resource, TokenKind::Bridge, hour).await;
    refused(&bridge, 1, "kind_mismatch").await;
    let late = world.mint_token_of(&resource, TokenKind::Node, Duration::ZERO).await;
    refused(&late, 1, "token_expired").await;
    let token = world.mint_token(&resource).await;
    refused(&late, 1, "token_expired").await;
    let answer = register(&world, &late, &older(&late, 1)).await.json();
    assert!(text(&answer, "message").contains("`slipway token issue web-1`"), "{answer}");
    let listed = world.get(&format!("/api/v1/resources/{resource}/tokens")).await.json();
    let states = listed.as_array().unwrap().iter().map(|token| text(token, "state"));
    assert_eq!(states.collect::<Vec<_>>(), ["revoked", "expired", "usable"]);
    let answer = register(&world, &token, &older(&token, 1)).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    refused(&token, 2, "token_consumed").await;
    let again = register(&world, &token, &older(&token, 1)).await;
    assert_eq!(again.json()["node_id"], answer.json()["node_id"], "the lost answer, again");
    assert_eq!(again.json()["mesh_ip"], answer.json()["mesh_ip"]);

    let other = world.declare("web-2").await;
    let token = world.mint_token(&other).await;
    world.ask("DELETE", &format!("/api/v1/resources/{other}"), KEY, "").await;
    let answer = register(&world, &token, &older(&token, 3)).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (409, &"not_enrolling".into()));
}

#[tokio::test]
async fn a_full_mesh_is_503_until_somebody_leaves() {
    let world = World::new().await;
    let answer = world.ask("PATCH", PROJECT, KEY, r#"{"mesh_cidr":"10.42.0.0/30"}"#).await;
    assert_eq!(answer.json()["mesh_cidr"], "10.42.0.0/30", "{answer:?}");
    let token = world.mint_token(&world.declare("web-1").await).await;
    let first = register(&world, &token, &older(&token, 1)).await.json();
    assert_eq!(
        (text(&first, "mesh_ip"), text(&first, "domain_mesh_cidr")),
        ("10.42.0.2", "10.42.0.0/30")
    );
    let token = world.mint_token(&world.declare("web-2").await).await;
    let full = register(&world, &token, &older(&token, 2)).await;
    assert_eq!((full.status.as_u16(), &full.json()["code"]), (503, &"pool_exhausted".into()));
    assert_eq!(full.header("retry-after"), "1");

    let moved = world.ask("PATCH", PROJECT, KEY, r#"{"mesh_cidr":"10.43.0.0/16"}"#).await;
    assert_eq!(moved.refused(409, "mesh_in_use").as_deref(), Some("mesh_cidr"));
    let path = format!("/v1/nodes/{}/deregister", text(&first, "node_id"));
    world.ask("POST", &path, text(&first, "node_secret_key"), "").await;
    let answer = register(&world, &token, &older(&token, 2)).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["mesh_ip"]), (201, &"10.42.0.2".into()));
}

#[tokio::test]
async fn a_project_names_its_mesh() {
    let world = World::new().await;
    let body = json!({ "name": "team-a", "mesh_cidr": "fd00:42::/64" });
    assert_eq!(world.create("/api/v1/projects", &body).await["mesh_cidr"], "fd00:42::/64");
    let default = world.create("/api/v1/projects", &json!({ "name": "team-b" })).await;
    assert_eq!(default["mesh_cidr"], "100.64.0.0/10");
    for bad in ["", "10.42.0.1/16", "10.42.0.0/31", "x"] {
        let body = json!({ "name": "team-c", "mesh_cidr": bad }).to_string();
        let field = world.post("/api/v1/projects", &body).await.refused(400, "invalid_input");
        assert_eq!(field.as_deref(), Some("mesh_cidr"), "{bad}");
    }
    let path = "/api/v1/projects/team-a";
    let nothing = world.ask("PATCH", path, KEY, "{}").await.refused(400, "invalid_input");
    assert_eq!(nothing.as_deref(), Some("labels"));
    let both = r#"{"mesh_cidr":"10.1.0.0/16","labels":{"tier":"1"}}"#;
    let shown = world.ask("PATCH", path, KEY, both).await.json();
    assert_eq!((text(&shown, "mesh_cidr"), &shown["labels"]["tier"]), ("10.1.0.0/16", &"1".into()));
    let only_labels = world.ask("PATCH", path, KEY, r#"{"labels":{}}"#).await.json();
    assert_eq!(text(&only_labels, "mesh_cidr"), "10.1.0.0/16", "the mesh stays");
}
