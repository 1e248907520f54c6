//! A minimal control plane, with only what a node uses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// A server that accepts every token once, and asks nodes to drain.
#[derive(Clone)]
pub(crate) struct ControlPlane {
    pub(crate) url: String,
    nodes: Arc<Mutex<HashMap<String, Node>>>,
}

/// The node that registered with a token, which is also its id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) registered: Value,
    pub(crate) heartbeats: usize,
    pub(crate) drain: bool,
    pub(crate) drained: bool,
    pub(crate) left: bool,
}

impl ControlPlane {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let plane = Self { url, nodes: Arc::default() };
        let router = Router::new()
            .route("/v1/register", post(register))
            .route("/v1/nodes/{id}/heartbeat", post(heartbeat))
            .route("/v1/nodes/{id}/drain", post(drain))
            .route("/v1/nodes/{id}/deregister", post(deregister))
            .with_state(plane.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        plane
    }

    pub(crate) fn node(&self, token: &str) -> Option<Node> {
        self.nodes.lock().expect("no panic before").get(token).cloned()
    }

    pub(crate) fn ask_to_drain(&self, token: &str) {
        self.change(token, |node| node.drain = true);
    }

    fn change(&self, token: &str, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.lock().expect("no panic before").get_mut(token) {
            change(node);
        }
    }
}

fn is_bearer(headers: &HeaderMap, expected: &str) -> bool {
    headers["authorization"] == format!("Bearer {expected}")
}

async fn register(
    State(plane): State<ControlPlane>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let token = body["token"].as_str().unwrap_or_default().to_owned();
    let mut nodes = plane.nodes.lock().expect("no panic before");
    if !is_bearer(&headers, &token) || nodes.contains_key(&token) {
        let refusal = json!({ "code": "token_consumed", "message": "once only" });
        return (StatusCode::FORBIDDEN, Json(refusal));
    }
    let reply = json!({
        "node_id": token,
        "mesh_ip": "10.0.0.1",
        "signing_public_key": "",
        "signing_key_id": "",
        "node_secret_key": format!("key-of-{token}"),
        "nsk": "",
        "peers": [],
        "peer_snapshot": [],
        "domain_mesh_cidr": "10.0.0.0/24",
    });
    nodes.insert(token, Node { registered: body, ..Node::default() });
    (StatusCode::CREATED, Json(reply))
}

async fn heartbeat(
    State(plane): State<ControlPlane>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> (StatusCode, Json<Value>) {
    let node = plane.node(&id).unwrap_or_default();
    if !is_bearer(&headers, &format!("key-of-{id}")) || node.drained || node.left {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "code": "unauthorized", "message": "" })));
    }
    plane.change(&id, |node| node.heartbeats += 1);
    let mut reply = json!({ "accepted_at": "now", "reconcile": false, "rotate_keys": false });
    if node.drain {
        reply["drain"] = json!({ "drain_id": format!("drain-{id}"), "requested_at": "now" });
    }
    (StatusCode::OK, Json(reply))
}

async fn drain(
    State(plane): State<ControlPlane>,
    Path(id): Path<String>,
    Json(body): Json<Value>,
) -> StatusCode {
    if body["drain_id"] != format!("drain-{id}") {
        return StatusCode::BAD_REQUEST;
    }
    plane.change(&id, |node| node.drained = true);
    StatusCode::NO_CONTENT
}

async fn deregister(State(plane): State<ControlPlane>, Path(id): Path<String>) -> StatusCode {
    plane.change(&id, |node| node.left = true);
    StatusCode::NO_CONTENT
}
