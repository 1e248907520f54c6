//! Foreign agents: a scripted plexd of each generation enrols with the real
//! binary, knowing only the protocol.
//!
//! The agents that the local engine starts get an address at which nothing
//! answers. They keep retrying, and the token stays in their directory, from
//! where the scripted ones take it, as a plexd takes it from its cloud-init.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;
use uuid::Uuid;

use crate::control_plane::{ControlPlane, TIMEOUT, client};

/// A scripted node: its URL and its key.
struct Scripted<'a> {
    plane: &'a ControlPlane,
    id: String,
    bearer: String,
}

impl Scripted<'_> {
    async fn ask(&self, method: Method, verb: &str, body: &Value) -> (u16, Value) {
        let path = format!("/v1/nodes/{}/{verb}", self.id);
        speak(self.plane, method, &path, Some(&self.bearer), body).await
    }
}

async fn speak(
    plane: &ControlPlane,
    method: Method,
    path: &str,
    bearer: Option<&str>,
    body: &Value,
) -> (u16, Value) {
    let mut request = client().request(method, format!("{}{path}", plane.url()));
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    if !body.is_null() {
        request = request.json(body);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null))
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}")).to_owned()
}

/// Declares, waits until a node is expected, and returns resource and token.
async fn waiting(plane: &ControlPlane, handle: &str) -> (String, String) {
    let resource = plane.declare(handle, 0).await;
    plane.wait_for_phase(&resource, "Enrolling").await;
    let directory = plane.node_directory(&resource).await;
    let file = directory.join("rootfs/etc/plexd/bootstrap-token");
    let token = wait::until(TIMEOUT, "the token to be in place", async || {
        std::fs::read_to_string(&file).map_err(|error| error.to_string())
    })
    .await;
    (resource, token.trim().to_owned())
}

async fn older<'a>(plane: &'a ControlPlane, token: &str) -> Scripted<'a> {
    let body = json!({
        "token": token,
        "public_key": BASE64.encode(&[0xa1; 32]),
        "hostname": "older.example",
        "metadata": { "rack": "7" },
        "capabilities": {
            "binary": { "version": "0.9.1", "checksum": "sha256:a1" },
            "builtin_actions": [{ "name": "drain", "description": "", "parameters": null }],
            "hooks": null,
        },
    });
    let (status, reply) = speak(plane, Method::POST, "/v1/register", Some(token), &body).await;
    assert_eq!(status, 201, "{reply}");
    assert_eq!(BASE64.decode(text(&reply, "signing_public_key").as_bytes()).unwrap().len(), 32);
    assert_eq!(text(&reply, "mesh_ip"), "100.64.0.2");
    Scripted { plane, id: text(&reply, "node_id"), bearer: text(&reply, "node_secret_key") }
}

async fn newer<'a>(plane: &'a ControlPlane, resource: &Value, token: &str) -> Scripted<'a> {
    let body = json!({
        "project_id": resource["project_id"],
        "resource_handle": resource["handle"],
        "bootstrap_token": token,
        "nonce": "c2NyaXB0ZWQ",
        "public_key": BASE64.encode(&[0xb2; 32]),
        "requested_resource_id": resource["id"],
    });
    let (status, reply) = speak(plane, Method::POST, "/v1/register", None, &body).await;
    assert_eq!(status, 201, "{reply}");
    assert_eq!(text(&reply, "domain_mesh_cidr"), "100.64.0.0/10");
    assert_eq!(reply["peer_snapshot"][0]["mesh_ip"], "100.64.0.2");
    let id = text(&reply, "node_id");
    let nsk = text(&reply, "nsk");
    let bare = Scripted { plane, id: id.clone(), bearer: nsk.clone() };
    assert_eq!(bare.ask(Method::POST, "heartbeat", &json!({})).await.0, 401, "a bare nsk");
    let mut bytes = id.parse::<Uuid>().unwrap().as_bytes().to_vec();
    bytes.extend(BASE64.decode(nsk.as_bytes()).unwrap());
    Scripted { plane, id, bearer: format!("nsk_live_{}", BASE64URL_NOPAD.encode(&bytes)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plexd_of_each_generation_enrols_unchanged() {
    for mut plane in ControlPlane::each("plexd_generations").await {
        plane.set(&["--public-url", "http://127.0.0.1:9", "--orphan-after", "300s"]);
        plane.start().await;
        let (of_older, token) = waiting(&plane, "older").await;
        let older = older(&plane, &token).await;
        plane.wait_for_phase(&of_older, "Ready").await;
        let (of_newer, token) = waiting(&plane, "newer").await;
        let newer = newer(&plane, &plane.resource(&of_newer).await, &token).await;
        let ready = plane.wait_for_phase(&of_newer, "Ready").await;
        assert_eq!(ready["node"]["hostname"], "newer", "named after its resource");

        let heartbeat = json!({
            "node_id": older.id, "timestamp": "2026-01-31T12:00:00Z", "status": "healthy",
            "uptime": "1h2m", "binary_checksum": "sha256:a2",
        });
        assert_eq!(older.ask(Method::POST, "heartbeat", &heartbeat).await.0, 200);
        let heartbeat = json!({
            "client_now": "2026-01-31T12:00:00Z", "binary_checksum": "sha256:b2",
            "binary_version": "2.0.0", "nat_summary": {},
        });
        let (status, answer) = newer.ask(Method::POST, "heartbeat", &heartbeat).await;
        assert_eq!((status, &answer["rotate_keys"]), (200, &false.into()), "{answer}");
        let (status, state) = newer.ask(Method::GET, "state", &Value::Null).await;
        assert_eq!((status, &state["reachability"]["state"]), (200, &"healthy".into()), "{state}");
        assert_eq!(state["peers"][0]["node_id"], older.id.as_str());
        let (status, events) = newer.ask(Method::GET, "events", &Value::Null).await;
        assert_eq!(
            (status, text(&events, "code").as_str()),
            (501, "signed_event_bus_not_provisioned")
        );
        let shown = plane.get(&format!("/api/v1/nodes/{}", older.id)).await;
        assert_eq!((&shown["mesh_ip"], &shown["version"]), (&"100.64.0.2".into(), &"0.9.1".into()));
        assert_eq!(
            (&shown["checksum"], &shown["status"]),
            (&"sha256:a2".into(), &"healthy".into())
        );

        // The older one leaves by itself, which needs a person's attention.
        assert_eq!(older.ask(Method::POST, "deregister", &Value::Null).await.0, 204);
        let left = plane
            .wait_for(&of_older, "left by its node", |resource| {
                resource["phase"] == "Enrolling" && resource["blockers"][0]["code"] == "node_left"
            })
            .await;
        assert_eq!(left["node"]["deregistered_how"], "left");
        assert_eq!(older.ask(Method::POST, "heartbeat", &json!({})).await.0, 401);
        let (_, state) = newer.ask(Method::GET, "state", &Value::Null).await;
        assert_eq!(state["peers"], json!([]), "nobody's peer any more");

        // The newer one does not support a drain, so nobody waits for it.
        plane.delete(&of_newer).await;
        let gone = plane.wait_for_phase(&of_newer, "Deleted").await;
        assert_eq!(gone["node"]["deregistered_how"], "immediate");
        assert_eq!(newer.ask(Method::GET, "state", &Value::Null).await.0, 401);
        plane.delete(&of_older).await;
        plane.wait_for_phase(&of_older, "Deleted").await;
        assert!(plane.agents().is_empty(), "{:?}", plane.agents());
        plane.stop().await;
    }
}
