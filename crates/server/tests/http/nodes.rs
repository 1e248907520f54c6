//! The node protocol: both generations register, send heartbeats, drain and leave.

use axum::body::Body;
use axum::http::Request;
use data_encoding::BASE64;
use serde_json::json;
use slipway_core::access::key_text::NodeKeyText;

use crate::world::{KEY, World};

fn public_key() -> String {
    BASE64.encode(&[9; 32])
}

/// A resource with an enrolled node: resource id, node id, node key.
pub(crate) async fn enrolled(world: &World, handle: &str) -> (String, String, String) {
    let resource = world.declare(handle).await;
    let token = world.mint_token(&resource).await;
    let mut key = [9; 32];
    key[..handle.len()].copy_from_slice(handle.as_bytes());
    let body = json!({
        "bootstrap_token": token, "public_key": BASE64.encode(&key), "nonce": format!("nonce of {handle}"),
        "resource_handle": handle, "capabilities": ["drain"], "from_the_future": { "a": 1 },
    });
    let answer = world.ask("POST", "/v1/register", "", &body.to_string()).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    let reply = answer.json();
    let text = |name: &str| reply[name].as_str().unwrap().to_owned();
    (resource, text("node_id"), text("node_secret_key"))
}

#[tokio::test]
async fn the_older_generation_registers_with_token_and_bearer() {
    let world = World::new().await;
    let resource = world.declare("web-1").await;
    let token = world.mint_token(&resource).await;
    let body = json!({ "token": token, "public_key": public_key(), "hostname": "h-1" });
    let answer = world.ask("POST", "/v1/register", &token, &body.to_string()).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    let reply = answer.json();
    assert_eq!(reply["signing_public_key"], "c2lnbmluZw==");
    assert_eq!(reply["signing_key_id"], "key-1");
    assert_eq!((&reply["peers"], &reply["peer_snapshot"]), (&json!([]), &json!([])));
    // Both fields contain the same key.
    let bare = BASE64.decode(reply["nsk"].as_str().unwrap().as_bytes()).unwrap();
    let node = reply["node_id"].as_str().unwrap().parse().unwrap();
    let bearer = NodeKeyText::mint("live", node, &bare.try_into().unwrap());
    assert_eq!(reply["node_secret_key"], bearer.expose());
    let shown = world.get(&format!("/api/v1/nodes/{node}")).await.json();
    assert_eq!((&shown["hostname"], &shown["registered"]), (&"h-1".into(), &true.into()));
}

/// A node that floods is told to wait, in the words of its protocol, and no other
/// node is.
#[tokio::test]
async fn a_node_that_floods_waits_and_no_other_does() {
    use slipway_core::access::rate::Rate;
    use slipway_server::StreamLimits;
    let rate = Rate { per_second: 1, burst: 8 };
    let world = World::limited(StreamLimits::default(), rate).await;
    let (_, flooding, flooding_key) = enrolled(&world, "web-1").await;
    let (_, calm, calm_key) = enrolled(&world, "web-2").await;
    let heartbeat = async |node: &str, key: &str| {
        world.ask("POST", &format!("/v1/nodes/{node}/heartbeat"), key, "{}").await
    };
    let mut refused = Vec::new();
    for _ in 0..50 {
        let answer = heartbeat(&flooding, &flooding_key).await;
        if answer.status.as_u16() != 200 {
            refused.push(answer);
        }
    }
    assert!(refused.len() > 30, "{}", refused.len());
    for answer in &refused {
        assert_eq!(answer.status.as_u16(), 429, "{answer:?}");
        assert_eq!(answer.json()["code"], "rate_limited");
        assert!((1..=2).contains(&answer.header("retry-after").parse::<u64>().unwrap()));
    }
    // Every call of the node counts.
    let state = world.ask("GET", &format!("/v1/nodes/{flooding}/state"), &flooding_key, "").await;
    assert_eq!(state.status.as_u16(), 429, "{state:?}");
    assert_eq!(heartbeat(&calm, &calm_key).await.status.as_u16(), 200);
    // Another node's key does not use up the rate of the one in the path.
    for _ in 0..50 {
        assert_ne!(heartbeat(&calm, &flooding_key).await.status.as_u16(), 200);
    }
    assert_eq!(heartbeat(&calm, &calm_key).await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_register_that_cannot_be_is_refused_in_the_protocols_words() {
    let world = World::new().await;
    let unknown = "psb_live_abcdefgh_node_abcdefghijklmnopqrstuvwxyz";
    let key = public_key();
    let table = [
        ("{".to_owned(), 400, "invalid_input"),
        (json!({ "public_key": key }).to_string(), 401, "token_invalid"),
        (json!({ "token": "x", "public_key": key }).to_string(), 401, "token_invalid"),
        (json!({ "token": unknown, "public_key": key }).to_string(), 401, "token_invalid"),
        (json!({ "token": unknown, "public_key": "AAAA" }).to_string(), 400, "public_key_invalid"),
    ];
    for (body, status, code) in table {
        let answer = world.ask("POST", "/v1/register", "", &body).await;
        assert_eq!(answer.status.as_u16(), status, "{body}: {answer:?}");
        let error = answer.json();
        assert_eq!(error["code"], code, "{body}");
        assert_eq!(error.as_object().unwrap().len(), 2, "code and message, no more: {error}");
    }
}

/// The caller has not shown a token yet, so it may not make the server wait.
#[tokio::test]
async fn a_register_whose_body_does_not_come_is_408() {
    let world = World::new().await;
    // From here on nothing uses the database, and only timers advance the clock.
    tokio::time::pause();
    let never = futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    let request = Request::post("/v1/register").body(Body::from_stream(never)).unwrap();
    let answer = world.send(request).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (408, &"request_timeout".into()));
}

#[tokio::test]
async fn a_token_serves_one_node() {
    let world = World::new().await;
    let resource = world.declare("web-1").await;
    let token = world.mint_token(&resource).await;
    let body =
        |key: u8| json!({ "token": token, "public_key": BASE64.encode(&[key; 32]) }).to_string();
    let first = world.ask("POST", "/v1/register", "", &body(1)).await;
    assert_eq!(first.status.as_u16(), 201);
    let second = world.ask("POST", "/v1/register", "", &body(2)).await;
    assert_eq!((second.status.as_u16(), &second.json()["code"]), (403, &"token_consumed".into()));
}

#[tokio::test]
async fn a_node_lives_drains_and_is_gone() {
    let world = World::new().await;
    let (resource, node, key) = enrolled(&world, "web-1").await;
    let path = |verb: &str| format!("/v1/nodes/{node}/{verb}");
    let heartbeat = world.ask("POST", &path("heartbeat"), &key, r#"{"uptime":"odd"}"#).await;
    assert_eq!(heartbeat.status.as_u16(), 200, "{heartbeat:?}");
    assert_eq!(
        (&heartbeat.json()["reconcile"], &heartbeat.json()["drain"]),
        (&false.into(), &json!(null))
    );

    let early = json!({ "drain_id": "0192f0c1-0000-7000-8000-123456789abc" }).to_string();
    let refused = world.ask("POST", &path("drain"), &key, &early).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["code"]),
        (409, &"drain_not_requested".into())
    );

    world.ask("DELETE", &format!("/api/v1/resources/{resource}"), KEY, "").await;
    let drain_id = world.request_drain(&resource).await;
    let heartbeat = world.ask("POST", &path("heartbeat"), &key, "").await;
    assert_eq!(heartbeat.json()["drain"]["drain_id"], drain_id.as_str());
    let done = json!({ "drain_id": drain_id }).to_string();
    let answer = world.ask("POST", &path("drain"), &key, &done).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""), "{answer:?}");

    for (verb, status) in [("heartbeat", 401), ("drain", 401), ("deregister", 204)] {
        let answer = world.ask("POST", &path(verb), &key, &done).await;
        assert_eq!(answer.status.as_u16(), status, "the key is revoked: {verb}");
    }
    let shown = world.get(&format!("/api/v1/nodes/{node}")).await.json();
    assert_eq!(shown["deregistered_how"], "acknowledged");
}

#[tokio::test]
async fn a_node_leaves_by_itself() {
    let world = World::new().await;
    let (_, node, key) = enrolled(&world, "web-1").await;
    let (_, _, other) = enrolled(&world, "web-2").await;
    let path = format!("/v1/nodes/{node}/deregister");
    // Repeated, it is answered the same, so that its agent forgets its identity.
    for _ in 0..2 {
        let answer = world.ask("POST", &path, &key, "").await;
        assert_eq!(answer.status.as_u16(), 204, "{answer:?}");
    }
    for key in [&other, &key.replace("nsk_live_", "nsk_live_A"), ""] {
        let answer = world.ask("POST", &path, key, "").await;
        assert_eq!(answer.status.as_u16(), 401, "{answer:?}");
    }
    let shown = world.get(&format!("/api/v1/nodes/{node}")).await.json();
    assert_eq!(shown["deregistered_how"], "left");
}

#[tokio::test]
async fn a_drain_can_be_forced_with_a_reason() {
    let world = World::new().await;
    let (resource, node, key) = enrolled(&world, "web-1").await;
    world.ask("DELETE", &format!("/api/v1/resources/{resource}"), KEY, "").await;
    let path = format!("/api/v1/resources/{resource}/force-drain");
    let answer = world.post(&path, r#"{"reason":"the host burned"}"#).await;
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
    let shown = answer.json();
    assert_eq!(shown["node"]["deregistered_how"], "forced");
    assert_eq!(shown["node"]["deregistered_reason"], "the host burned");
    let heartbeat = world.ask("POST", &format!("/v1/nodes/{node}/heartbeat"), &key, "").await;
    assert_eq!(heartbeat.status.as_u16(), 401);
    world.post(&path, r#"{"reason":"again"}"#).await.refused(409, "nothing_to_force");
}

#[tokio::test]
async fn the_key_of_another_node_is_no_key() {
    let world = World::new().await;
    let (_, one, _) = enrolled(&world, "web-1").await;
    let (_, _, key_of_two) = enrolled(&world, "web-2").await;
    for (path, key) in [
        (format!("/v1/nodes/{one}/heartbeat"), key_of_two.clone()),
        ("/v1/nodes/x/heartbeat".to_owned(), key_of_two),
        (format!("/v1/nodes/{one}/heartbeat"), KEY.to_owned()),
        (format!("/v1/nodes/{one}/heartbeat"), String::new()),
    ] {
        let answer = world.ask("POST", &path, &key, "").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["code"]),
            (401, &"unauthenticated".into())
        );
    }
}

#[tokio::test]
async fn what_is_not_offered_is_501_by_name() {
    let world = World::new().await;
    let (_, node, key) = enrolled(&world, "web-1").await;
    let (_, _, other) = enrolled(&world, "web-2").await;
    for (path, of_node, code) in [
        (format!("/v1/nodes/{node}/secrets/database"), true, "secrets_not_provisioned"),
        (format!("/v1/nodes/{node}/events"), true, "signed_event_bus_not_provisioned"),
        ("/v1/keys/rotate".to_owned(), false, "rotate_not_provisioned"),
    ] {
        let answer = world.ask("GET", &path, &key, "").await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (501, &code.into()), "{path}");
        for wrong in [Some(""), Some(KEY), of_node.then_some(&*other)].into_iter().flatten() {
            let answer = world.ask("GET", &path, wrong, "").await;
            let code = &answer.json()["code"];
            assert_eq!((answer.status.as_u16(), code), (401, &"unauthenticated".into()), "{path}");
        }
    }
    let answer = world.ask("GET", "/v1/register", "", "").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["code"]),
        (405, &"method_not_allowed".into())
    );
    assert_eq!(answer.header("allow"), "POST");
}

#[tokio::test]
async fn nodes_are_listed_with_the_names_of_what_they_belong_to() {
    let world = World::new().await;
    let (resource, node, _) = enrolled(&world, "web-1").await;
    let listed = world.get("/api/v1/nodes").await.json();
    for shown in [&listed[0], &world.get(&format!("/api/v1/nodes/{node}")).await.json()] {
        assert_eq!((&shown["resource"], &shown["project"]), (&"web-1".into(), &"default".into()));
    }
    let shown = world.get(&format!("/api/v1/resources/{resource}")).await.json();
    assert_eq!(shown["node"].get("resource"), None, "{shown}");
}

#[tokio::test]
async fn a_machine_enrols_again_with_a_token_that_is_shown_once() {
    let world = World::new().await;
    let (resource, node, key) = enrolled(&world, "web-1").await;
    let path = format!("/api/v1/resources/{resource}/reenrol");
    world.post(&path, r#"{"reason":"disk was full"}"#).await.refused(409, "not_enrolling");
    world.set_phase(&resource, "Ready").await;
    let field = world.post(&path, r#"{"reason":" "}"#).await.refused(400, "invalid_input");
    assert_eq!(field.as_deref(), Some("reason"));
    let short = r#"{"reason":"disk was full","ttl_seconds":1}"#;
    let field = world.post(&path, short).await.refused(400, "invalid_input");
    assert_eq!(field.as_deref(), Some("ttl_seconds"));

    let issued = world.post(&path, r#"{"reason":"disk was full"}"#).await;
    assert_eq!(issued.status.as_u16(), 201, "{issued:?}");
    let token = issued.json()["token"].as_str().unwrap().to_owned();
    let late = world.ask("POST", &format!("/v1/nodes/{node}/heartbeat"), &key, "").await;
    assert_eq!(late.status.as_u16(), 401, "{late:?}");
    let late = world.ask("POST", &format!("/v1/nodes/{node}/deregister"), &key, "").await;
    assert_eq!(late.status.as_u16(), 204, "it is what the node wants: {late:?}");
    let gone = world.get(&format!("/api/v1/nodes/{node}")).await.json();
    assert_eq!(
        (&gone["deregistered_how"], &gone["deregistered_reason"]),
        (&"reenrolled".into(), &"disk was full".into())
    );
    let body = json!({ "token": token, "public_key": public_key() }).to_string();
    let answer = world.ask("POST", "/v1/register", &token, &body).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    let reply = answer.json();
    let node = reply["node_id"].as_str().unwrap();
    let key = reply["node_secret_key"].as_str().unwrap();
    let heartbeat = world.ask("POST", &format!("/v1/nodes/{node}/heartbeat"), key, "").await;
    assert_eq!(heartbeat.status.as_u16(), 200, "{heartbeat:?}");
    world.post(&path, r#"{"reason":"again"}"#).await.refused(409, "nothing_to_reenrol");
    let audit = world.get("/api/v1/audit?limit=500").await.json();
    let verbs: Vec<_> = audit.as_array().unwrap().iter().map(|entry| &entry["verb"]).collect();
    assert!(verbs.contains(&&"resource.reenrol".into()), "{verbs:?}");
}
