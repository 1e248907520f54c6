//! A server that implements just enough of the node protocol, and a node directory
//! as an engine creates it. The server records every call and answers by script.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::json;
use slipway_agent::node::{Ending, Error, NodeOptions, run_until};
use slipway_wire::nodes::plexd::{
    DrainAcknowledgement, DrainRequest, HeartbeatReply, HeartbeatRequest, RegisterReply,
    RegisterRequest,
};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// No condition of these tests needs more than a second; a loaded machine may.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const TOKEN: &str = "psb_test_projectid_node_aaaaaaaaaaaaaaaaaaaaaaaa";
pub(crate) const NODE_ID: &str = "01890000-0000-7000-8000-000000000001";
pub(crate) const NODE_KEY: &str = "nsk_test_this_must_not_be_seen_anywhere";

#[derive(Debug, Clone)]
pub(crate) enum RegisterAnswer {
    /// The call takes effect, but the answer breaks off.
    Lost,
    Refuse(u16, &'static str),
    /// 503 with `Retry-After: 0`.
    Later,
}

#[derive(Debug, Clone)]
pub(crate) struct Registered {
    pub(crate) request: RegisterRequest,
    pub(crate) authorization: String,
    pub(crate) key_was_stored: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    pub(crate) registers: Vec<Registered>,
    pub(crate) heartbeats: Vec<HeartbeatRequest>,
    /// When each came, and the seconds that it was told to wait.
    pub(crate) paced: Vec<(Instant, Option<u64>)>,
    /// Heartbeats that are answered 429, with the seconds to wait.
    pub(crate) heartbeat_limits: VecDeque<u64>,
    pub(crate) drains: Vec<(DrainAcknowledgement, Instant)>,
    pub(crate) enrolled: Option<Instant>,
    /// Answers before the first good one.
    pub(crate) register_script: VecDeque<RegisterAnswer>,
    pub(crate) drain_failures: usize,
    pub(crate) drain_id: Option<String>,
    pub(crate) revoked: bool,
    directory: PathBuf,
}

type Shared = Arc<watch::Sender<Calls>>;

pub(crate) struct StandIn {
    calls: Shared,
    pub(crate) url: String,
    server: JoinHandle<()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl StandIn {
    pub(crate) async fn start() -> Self {
        let calls: Shared = Arc::new(watch::Sender::new(Calls::default()));
        let router = Router::new()
            .route("/v1/register", post(register))
            .route("/v1/nodes/{id}/heartbeat", post(heartbeat))
            .route("/v1/nodes/{id}/drain", post(drain))
            .with_state(calls.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { calls, url, server }
    }

    pub(crate) fn script(&self, change: impl FnOnce(&mut Calls)) {
        self.calls.send_modify(change);
    }

    pub(crate) fn calls(&self) -> Calls {
        self.calls.borrow().clone()
    }

    pub(crate) async fn until(&self, what: &str, condition: impl FnMut(&Calls) -> bool) -> Calls {
        let mut receiver = self.calls.subscribe();
        let waited = tokio::time::timeout(TIMEOUT, receiver.wait_for(condition)).await;
        match waited {
            Ok(calls) => calls.unwrap().clone(),
            Err(_) => panic!("not within {TIMEOUT:?}: {what}; calls so far: {:?}", self.calls()),
        }
    }
}

async fn register(
    State(calls): State<Shared>,
    headers: HeaderMap,
    Json(request): Json<RegisterRequest>,
) -> Response {
    let mut scripted = None;
    calls.send_modify(|calls| {
        let key = calls.directory.join("state/key.pk8");
        calls.registers.push(Registered {
            request,
            authorization: bearer(&headers),
            key_was_stored: fs::metadata(key).is_ok_and(|key| key.len() > 0),
        });
        scripted = calls.register_script.pop_front();
        if scripted.is_none() {
            calls.enrolled = Some(Instant::now());
            calls.revoked = false;
        }
    });
    match scripted {
        None => (StatusCode::CREATED, Json(register_reply())).into_response(),
        Some(RegisterAnswer::Lost) => {
            let broken = futures::stream::once(async {
                Err::<String, _>(std::io::Error::other("the answer breaks off"))
            });
            (StatusCode::CREATED, Body::from_stream(broken)).into_response()
        }
        Some(RegisterAnswer::Refuse(status, code)) => {
            // A careless server that quotes the token.
            let message = format!("the token {TOKEN} is not accepted");
            error(StatusCode::from_u16(status).unwrap(), code, &message)
        }
        Some(RegisterAnswer::Later) => {
            let reply = error(StatusCode::SERVICE_UNAVAILABLE, "pool_exhausted", "later");
            ([(header::RETRY_AFTER, "0")], reply).into_response()
        }
    }
}

async fn heartbeat(
    State(calls): State<Shared>,
    UrlPath(id): UrlPath<String>,
    headers: HeaderMap,
    Json(request): Json<HeartbeatRequest>,
) -> Response {
    let mut wait = None;
    calls.send_modify(|calls| {
        calls.heartbeats.push(request);
        wait = calls.heartbeat_limits.pop_front();
        calls.paced.push((Instant::now(), wait));
    });
    if let Some(wait) = wait {
        let reply = error(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too often");
        return ([(header::RETRY_AFTER, wait.to_string())], reply).into_response();
    }
    let calls = calls.borrow();
    if id != NODE_ID || bearer(&headers) != format!("Bearer {NODE_KEY}") || calls.revoked {
        return error(StatusCode::UNAUTHORIZED, "unauthorized", "unknown key");
    }
    let drain = calls.drain_id.as_ref().map(|drain_id| DrainRequest {
        drain_id: drain_id.clone(),
        requested_at: "2026-01-01T00:00:00Z".to_owned(),
    });
    let reply = HeartbeatReply {
        accepted_at: "2026-01-01T00:00:00Z".to_owned(),
        reconcile: false,
        rotate_keys: false,
        drain,
    };
    Json(reply).into_response()
}

async fn drain(
    State(calls): State<Shared>,
    UrlPath(id): UrlPath<String>,
    headers: HeaderMap,
    Json(request): Json<DrainAcknowledgement>,
) -> Response {
    assert_eq!((id.as_str(), bearer(&headers)), (NODE_ID, format!("Bearer {NODE_KEY}")));
    let mut accepted = false;
    calls.send_modify(|calls| {
        calls.drains.push((request, Instant::now()));
        accepted = calls.drains.len() > calls.drain_failures;
        calls.revoked = accepted;
    });
    if accepted {
        StatusCode::NO_CONTENT.into_response()
    } else {
        error(StatusCode::BAD_GATEWAY, "bad_gateway", "try again")
    }
}

fn bearer(headers: &HeaderMap) -> String {
    let value = headers.get(header::AUTHORIZATION);
    value.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

fn error(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({"code": code, "message": message}))).into_response()
}

fn register_reply() -> RegisterReply {
    RegisterReply {
        node_id: NODE_ID.to_owned(),
        mesh_ip: "100.64.0.1".to_owned(),
        signing_public_key: String::new(),
        signing_key_id: "1".to_owned(),
        node_secret_key: NODE_KEY.to_owned(),
        nsk: String::new(),
        peers: Vec::new(),
        peer_snapshot: Vec::new(),
        domain_mesh_cidr: "100.64.0.0/10".to_owned(),
    }
}

/// A node directory in a folder of its own, removed at the end of the test.
pub(crate) struct NodeDirectory {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl NodeDirectory {
    /// `settings` are further lines of config.yaml.
    pub(crate) fn new(server: &StandIn, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node");
        fs::create_dir(&path).unwrap();
        let directory = Self { _folder: folder, path };
        server.script(|calls| calls.directory.clone_from(&directory.path));
        directory.user_data(&server.url, TOKEN, settings);
        directory
    }

    pub(crate) fn user_data(&self, url: &str, token: &str, settings: &[&str]) {
        let mut config = vec![
            format!("api_url: {url}"),
            "project_id: 01890000-0000-7000-8000-00000000000a".to_owned(),
            "resource_handle: edge-1".to_owned(),
            "hostname: edge-1.example".to_owned(),
            "heartbeat_interval_ms: 20".to_owned(),
            "something_of_plexd: {nested: true}".to_owned(),
        ];
        config.extend(settings.iter().map(|&line| line.to_owned()));
        let config = config.join("\n      ");
        let document = format!(
            "#cloud-config
write_files:
  - path: /etc/plexd/config.yaml
    permissions: '0644'
    content: |
      {config}
  - path: /etc/plexd/bootstrap-token
    permissions: '0600'
    content: {token}
runcmd:
  - [plexd, up]
"
        );
        let temporary = self.path.join("user-data.new");
        fs::write(&temporary, document).unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(temporary, self.path.join("user-data")).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn status(&self) -> serde_json::Value {
        let content = fs::read(self.file("status.json")).unwrap_or_else(|_| b"{}".to_vec());
        serde_json::from_slice(&content).unwrap()
    }

    pub(crate) async fn until_state(&self, state: &str) -> serde_json::Value {
        eventually(&format!("state {state}, it is {}", self.status()), || {
            self.status()["state"] == state
        })
        .await;
        self.status()
    }
}

/// An agent in this process.
pub(crate) struct Agent {
    tell: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<Ending, Error>>,
}

impl Agent {
    pub(crate) fn start(directory: &Path) -> Self {
        let (tell, told) = oneshot::channel();
        let options = NodeOptions { directory: directory.to_owned() };
        let task = tokio::spawn(async move {
            run_until(options, async {
                let _ = told.await;
            })
            .await
        });
        Self { tell: Some(tell), task }
    }

    /// Waits for the agent to end by itself.
    pub(crate) async fn ending(mut self) -> Result<Ending, Error> {
        let ended = tokio::time::timeout(TIMEOUT, &mut self.task).await;
        ended.expect("the agent did not end").unwrap()
    }

    pub(crate) async fn stop(mut self) {
        self.tell.take().unwrap().send(()).unwrap();
        assert_eq!(self.ending().await.unwrap(), Ending::Told);
    }
}

/// Polls, because files send no notification.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let look = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, look).await.is_ok(), "not within {TIMEOUT:?}: {what}");
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
