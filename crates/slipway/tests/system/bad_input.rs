//! Bad input over HTTP: each has a stable code, names the field or the remedy,
//! leaves nothing half written and consumes no token.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, KEY, client};

const UNKNOWN: &str = "0192f0c1-2b3c-7d4e-8f50-123456789abc";

#[tokio::test(flavor = "multi_thread")]
async fn wrong_declarations_are_refused_with_field_and_code() {
    for mut plane in ControlPlane::each("wrong_declarations_are_refused").await {
        plane.start().await;
        plane.declare("taken", 0).await;
        let good = json!({ "handle": "web-1", "blueprint": "local-node" });
        let with = |key: &str, value: Value| {
            let mut body = good.clone();
            body[key] = value;
            body
        };
        let table = [
            (with("handle", json!("Not A Handle")), 400, "invalid_input", "handle"),
            (with("handle", json!("taken")), 409, "handle_taken", "handle"),
            (with("handle", json!(7)), 400, "invalid_input", "handle"),
            (json!({ "blueprint": "local-node" }), 400, "invalid_input", "handle"),
            (with("colour", json!("red")), 400, "invalid_input", "colour"),
            (with("blueprint", json!("none")), 422, "blueprint_not_found", "blueprint"),
            (with("version", json!("v9")), 422, "blueprint_not_found", "blueprint"),
            (with("project", json!("a\u{0}")), 400, "invalid_input", "project"),
            (with("project", json!("none")), 422, "project_not_found", "project"),
            (with("credential", json!("none")), 422, "credential_not_found", "credential"),
            (
                with("parameters", json!({"busy_seconds": "x"})),
                422,
                "parameter_values_invalid",
                "parameters.busy_seconds",
            ),
            (
                with("parameters", json!({"speed": 1})),
                422,
                "parameter_values_invalid",
                "parameters.speed",
            ),
            (with("labels", json!({"a b": "c"})), 400, "invalid_input", "labels.a b"),
        ];
        for (body, status, code, field) in table {
            let (seen, problem) =
                plane.call(Method::POST, "/api/v1/resources", Some(body.clone())).await;
            assert_eq!((seen, problem["code"].as_str()), (status, Some(code)), "{body}: {problem}");
            assert!(
                problem["detail"].as_str().unwrap().contains(field.rsplit('.').next().unwrap()),
                "{problem}"
            );
            assert_eq!(problem["details"]["field"], field, "{problem}");
            assert_eq!(problem["message"], problem["detail"]);
            assert!(problem["correlation_id"].is_string());
        }
        let resources = plane.get("/api/v1/resources").await;
        assert_eq!(resources.as_array().unwrap().len(), 1, "nothing was half written");
        let events = plane.events().await;
        let requested = events.iter().filter(|(_, kind)| kind.ends_with("Requested"));
        assert_eq!(requested.count(), 1, "{events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_malformed_addresses_and_bodies_are_told_apart() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let table = [
        (Method::GET, format!("/api/v1/resources/{UNKNOWN}"), 404, "resource_not_found"),
        (Method::DELETE, format!("/api/v1/resources/{UNKNOWN}"), 404, "resource_not_found"),
        (Method::GET, format!("/api/v1/resources/{UNKNOWN}/explain"), 404, "resource_not_found"),
        (Method::GET, "/api/v1/resources/nonsense".to_owned(), 404, "resource_not_found"),
        (Method::GET, format!("/api/v1/nodes/{UNKNOWN}"), 404, "node_not_found"),
        (Method::GET, format!("/api/v1/deletions/{UNKNOWN}"), 404, "deletion_not_found"),
        (Method::GET, "/api/v1/resources?limit=0".to_owned(), 400, "invalid_input"),
        (Method::GET, "/api/v1/resources?cursor=%00".to_owned(), 400, "invalid_input"),
        (Method::GET, "/api/v1/resources?colour=red".to_owned(), 400, "invalid_input"),
        (Method::GET, "/api/v1/unheard-of".to_owned(), 404, "route_not_found"),
        (Method::PATCH, "/api/v1/resources".to_owned(), 405, "method_not_allowed"),
    ];
    for (method, path, status, code) in table {
        let (seen, problem) = plane.call(method.clone(), &path, None).await;
        assert_eq!(
            (seen, problem["code"].as_str()),
            (status, Some(code)),
            "{method} {path}: {problem}"
        );
    }
    let raw = async |body: &'static str, key: Option<&str>| {
        let mut request = client()
            .post(format!("{}/api/v1/resources", plane.url()))
            .header("content-type", "application/json")
            .body(body);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let problem: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        (status, problem)
    };
    let (status, problem) = raw("{\n  \"handle\": ,", Some(KEY)).await;
    assert_eq!((status, problem["code"].as_str()), (400, Some("invalid_input")));
    assert!(problem["detail"].as_str().unwrap().contains("line 2"), "{problem}");
    for key in [None, Some("nonsense"), Some("slipway_testtest_aaaaaaaaaaaaaaaaaaaaaaaa")] {
        // Without a valid key even an unreadable body is not parsed.
        let (status, problem) = raw("{", key).await;
        assert_eq!((status, problem["code"].as_str()), (401, Some("unauthenticated")), "{key:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_does_not_fit_enrols_nobody() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let key = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let register = async |body: Value| {
        let (status, answer) = plane.call(Method::POST, "/v1/register", Some(body)).await;
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    };
    let malformed = json!({ "token": "psb_live_x", "public_key": key });
    assert_eq!(register(malformed).await, (401, "token_invalid".to_owned()));
    let foreign = format!("psb_live_{}_node_{}", "a".repeat(25) + "q", "b".repeat(52));
    assert_eq!(
        register(json!({ "token": foreign, "public_key": key })).await,
        (401, "token_invalid".to_owned())
    );
    assert_eq!(
        register(json!({ "token": foreign, "public_key": "AAAA" })).await,
        (400, "public_key_invalid".to_owned())
    );
    assert_eq!(register(json!({ "public_key": key })).await, (401, "token_invalid".to_owned()));

    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let directory = plane.node_directory(&id).await;
    let user_data = std::fs::read_to_string(directory.join("user-data")).unwrap();
    let token = user_data.split_whitespace().find(|word| word.starts_with("psb_")).unwrap();
    // Another caller with the consumed token; the node itself has sent its first heartbeat.
    plane
        .wait_for(&id, "heard of", |resource| resource["node"]["last_heartbeat_at"].is_string())
        .await;
    assert_eq!(
        register(json!({ "token": token, "public_key": key })).await,
        (403, "token_consumed".to_owned())
    );
    plane.delete(&id).await;
    let (status, code) = register(json!({ "token": token, "public_key": key })).await;
    assert_eq!((status, code.as_str()), (409, "not_enrolling"));
    // Calls without a node key, or with another's, are refused.
    let node = plane.resource(&id).await["node"]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/nodes/{node}/heartbeat");
    let (status, answer) = plane.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!((status, answer["code"].as_str()), (401, Some("unauthenticated")));
}

/// Invariant 9: an error consumes nothing. The agent cannot reach the server,
/// so the token stays unused until this test presents it.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_register_leaves_the_token_usable() {
    for mut plane in ControlPlane::each("a_refused_register_leaves_the_token_usable").await {
        plane.set(&["--public-url", "http://127.0.0.1:1"]);
        plane.start().await;
        let id = plane.declare("web-1", 0).await;
        plane.wait_for_phase(&id, "Enrolling").await;
        let user_data = plane.node_directory(&id).await.join("user-data");
        let user_data = std::fs::read_to_string(user_data).unwrap();
        let token = user_data.split_whitespace().find(|word| word.starts_with("psb_")).unwrap();
        let key = |byte: u8| data_encoding::BASE64.encode(&[byte; 32]);
        let register = async |body: Value| {
            let (status, answer) = plane.call(Method::POST, "/v1/register", Some(body)).await;
            let what = answer["code"].as_str().or(answer["node_id"].as_str());
            (status, what.unwrap_or_default().to_owned())
        };
        let refused = [
            (json!({ "token": token, "public_key": "AAAA" }), 400, "public_key_invalid"),
            (
                json!({ "token": token, "public_key": key(1), "project_id": UNKNOWN }),
                403,
                "project_mismatch",
            ),
            (
                json!({ "token": token, "public_key": key(1), "project_id": "x" }),
                422,
                "registration_invalid",
            ),
            (
                json!({ "token": token, "public_key": key(1), "resource_handle": "other" }),
                404,
                "resource_not_found",
            ),
        ];
        for (body, status, code) in refused {
            assert_eq!(register(body.clone()).await, (status, code.to_owned()), "{body}");
        }
        let (status, node) =
            register(json!({ "bootstrap_token": token, "public_key": key(1) })).await;
        assert_eq!(status, 201, "{node}");
        // A lost answer is repeated to the same key, and to no other.
        let again = register(json!({ "token": token, "public_key": key(1) })).await;
        assert_eq!(again, (201, node.clone()));
        let other = register(json!({ "token": token, "public_key": key(2) })).await;
        assert_eq!(other, (403, "token_consumed".to_owned()));
        let ready = plane.wait_for_phase(&id, "Ready").await;
        assert_eq!(ready["node"]["id"], json!(node));
    }
}

/// Bodies that unpack to one byte more than is taken, and to 64 times as much.
#[tokio::test(flavor = "multi_thread")]
async fn many_packed_bodies_at_once_cost_no_more_than_their_limit() {
    const AT_ONCE: usize = 64;
    const LIMIT: usize = 1 << 20;
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let before = plane.most_memory();
    for unpacked in [LIMIT + 1, 64 * LIMIT] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&vec![b' '; unpacked]).unwrap();
        let body = encoder.finish().unwrap();
        assert!(body.len() <= LIMIT, "{}", body.len());
        let url = format!("{}/api/v1/resources", plane.url());
        let asked = (0..AT_ONCE).map(|_| {
            let request = client().post(&url).bearer_auth(KEY).header("content-encoding", "gzip");
            request.body(body.clone()).send()
        });
        for answer in futures::future::join_all(asked).await {
            assert_eq!(answer.unwrap().status().as_u16(), 413, "{unpacked}");
        }
    }
    let grown = plane.most_memory() - before;
    // A packed and an unpacked body each, and room for the connections.
    let most = (AT_ONCE * 2 * LIMIT + 64 * LIMIT) as u64;
    assert!(grown < most, "{AT_ONCE} bodies cost {grown} bytes");
    plane.stop().await;
}
