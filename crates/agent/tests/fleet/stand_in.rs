//! A control plane that implements just enough of Fleet's protocol for an agent, and an
//! agent in this process. The control plane records every call and answers by script.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use slipway_agent::fleet::{Error, Key, Options, Target, run_until};
use slipway_wire::fleet::{
    DeploymentObject, HealthStatusUpdate, HeartbeatReport, NewAgentEvent, PruneConfirmation,
    PruneRefusal,
};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// No condition of these tests needs more than a few seconds; a loaded machine may.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) const KEY: &str = "slipway_agentkey_this-must-not-be-seen";
pub(crate) const AGENT: &str = "01890000-0000-7000-8000-00000000a9e1";

/// Each stand-in is an installation of its own: those of a process may share a cluster, where an
/// agent may search for everything that carries its marks.
fn installation() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("01890000-0000-7000-a000-{:012x}", LAST.fetch_add(1, Ordering::Relaxed))
}

/// What the control plane knows and was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    pub(crate) installation: String,
    pub(crate) status: String,
    /// What it offers, by stack.
    pub(crate) offered: BTreeMap<String, DeploymentObject>,
    pub(crate) number: i64,
    pub(crate) events: Vec<NewAgentEvent>,
    pub(crate) heartbeats: Vec<HeartbeatReport>,
    pub(crate) healths: Vec<HealthStatusUpdate>,
    pub(crate) refusals: Vec<PruneRefusal>,
    pub(crate) confirmed: Vec<String>,
    /// Polls answered, whatever the answer.
    pub(crate) polls: usize,
    /// Polls that are answered 503, next.
    pub(crate) failing_polls: usize,
    /// Reports that are answered 503, next.
    pub(crate) failing_events: usize,
    /// Whether the network is cut: no request is answered, whatever it is.
    pub(crate) is_cut: bool,
    /// Requests that were not answered.
    pub(crate) unanswered: usize,
    /// Whether it speaks the published protocol alone: no tag, and nothing held back.
    pub(crate) is_plain: bool,
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

/// The id of a stack of this number.
pub(crate) fn stack(number: u32) -> String {
    format!("01890000-0000-7000-8000-{number:012x}")
}

impl StandIn {
    pub(crate) async fn start() -> Self {
        let (installation, status) = (installation(), "ACTIVE".to_owned());
        let calls = Calls { installation, status, ..Calls::default() };
        let calls: Shared = Arc::new(watch::Sender::new(calls));
        let router = Router::new()
            .route("/api/v1/auth/pak", post(authenticate))
            .route("/api/v1/agents/{id}", get(agent))
            .route("/api/v1/agents/{id}/heartbeat", post(heartbeat))
            .route("/api/v1/agents/{id}/target-state", get(target_state))
            .route("/api/v1/agents/{id}/events", post(event))
            .route("/api/v1/agents/{id}/health-status", patch(health))
            .route("/api/v1/agents/{id}/prune-refusal", put(refusal))
            .route("/api/v1/agents/{id}/prune-confirmations", get(confirmations))
            .layer(middleware::from_fn_with_state(calls.clone(), unless_cut))
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
        match tokio::time::timeout(TIMEOUT, receiver.wait_for(condition)).await {
            Ok(calls) => calls.unwrap().clone(),
            Err(_) => {
                panic!("not within {TIMEOUT:?}: {what}; reports so far: {:?}", self.calls().events)
            }
        }
    }

    fn put(&self, number: u32, content: &str, is_marker: bool, keep: bool) -> String {
        let mut id = String::new();
        self.script(|calls| {
            calls.number += 1;
            id = format!("01890000-0000-7000-9000-{:012x}", calls.number);
            let object = DeploymentObject {
                created_at: "2026-01-02T03:04:05Z".to_owned(),
                deleted_at: None,
                id: id.clone(),
                is_deletion_marker: is_marker,
                keep,
                per_agent: false,
                sequence_id: calls.number,
                stack_id: stack(number),
                submitted_at: "2026-01-02T03:04:05Z".to_owned(),
                updated_at: "2026-01-02T03:04:05Z".to_owned(),
                yaml_checksum: format!("{:064x}", calls.number),
                yaml_content: content.to_owned(),
            };
            calls.offered.insert(stack(number), object);
        });
        id
    }

    /// Offers content; the id of the object.
    pub(crate) fn offer(&self, number: u32, content: &str) -> String {
        self.put(number, content, false, false)
    }

    /// Offers a marker until the agent reports success on it.
    pub(crate) fn mark(&self, number: u32) -> String {
        self.put(number, "", true, false)
    }

    pub(crate) fn mark_kept(&self, number: u32) -> String {
        self.put(number, "", true, true)
    }

    /// A marker that contradicts itself.
    pub(crate) fn mark_with(&self, number: u32, content: &str) -> String {
        self.put(number, content, true, false)
    }

    /// Does not offer a stack any more, as a server that forgot it.
    pub(crate) fn withdraw(&self, number: u32) {
        self.script(|calls| {
            calls.offered.remove(&stack(number));
        });
    }

    /// Waits for a report.
    pub(crate) async fn reported(&self, object: &str, event: &str, status: &str) -> NewAgentEvent {
        let is_it = |one: &NewAgentEvent| {
            (&*one.deployment_object_id, &*one.event_type, &*one.status) == (object, event, status)
        };
        let what = format!("{event} {status} on {object}");
        let calls = self.until(&what, |calls| calls.events.iter().any(is_it)).await;
        calls.events.into_iter().rfind(is_it).unwrap()
    }

    /// Waits until this many polls more were answered.
    pub(crate) async fn polled(&self, more: usize) -> Calls {
        let before = self.calls().polls;
        self.until("polls", |calls| calls.polls >= before + more).await
    }

    pub(crate) fn options(&self, target: Target) -> Options {
        Options {
            server: self.url.clone(),
            key: Key::Text(KEY.to_owned()),
            ca_file: None,
            id: None,
            name: None,
            cluster_name: None,
            poll: Duration::from_secs(1),
            once: false,
            target,
        }
    }
}

fn is_ours(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|key| *key == *format!("Bearer {KEY}"))
}

fn error(status: StatusCode, code: &str) -> Response {
    (status, Json(json!({ "code": code, "message": format!("not now, {KEY}") }))).into_response()
}

async fn unless_cut(State(calls): State<Shared>, request: Request, next: Next) -> Response {
    if calls.borrow().is_cut {
        calls.send_modify(|calls| calls.unanswered += 1);
        return std::future::pending().await;
    }
    next.run(request).await
}

async fn authenticate(State(calls): State<Shared>, headers: HeaderMap) -> Response {
    if !is_ours(&headers) {
        return error(StatusCode::UNAUTHORIZED, "unauthorized");
    }
    Json(json!({
        "admin": false, "agent": AGENT, "generator": null, "readonly": false,
        "installation": calls.borrow().installation,
    }))
    .into_response()
}

fn row(status: &str) -> Value {
    json!({
        "cluster_name": "east", "created_at": "2026-01-02T03:04:05Z", "deleted_at": null,
        "id": AGENT, "k8s_api_latency_ms": null, "k8s_reachable": null,
        "k8s_reported_at": null, "last_heartbeat": null, "name": "one", "status": status,
        "updated_at": "2026-01-02T03:04:05Z",
    })
}

async fn agent(State(calls): State<Shared>, Path(id): Path<String>) -> Response {
    assert_eq!(id, AGENT);
    let status = calls.borrow().status.clone();
    Json(row(&status)).into_response()
}

async fn heartbeat(State(calls): State<Shared>, Json(report): Json<HeartbeatReport>) -> StatusCode {
    calls.send_modify(|calls| calls.heartbeats.push(report));
    StatusCode::NO_CONTENT
}

fn tag(calls: &Calls) -> String {
    let ids: Vec<_> = calls.offered.values().map(|object| &*object.id).collect();
    format!("\"{}\"", ids.join("+"))
}

async fn target_state(
    State(calls): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let known = headers.get(header::IF_NONE_MATCH).map(|tag| tag.to_str().unwrap().to_owned());
    if let (Some(known), Some(wait)) = (&known, query.get("wait")) {
        let wait = Duration::from_secs(wait.parse().unwrap());
        let mut receiver = calls.subscribe();
        let changed = receiver.wait_for(|calls| tag(calls) != *known || calls.failing_polls > 0);
        let _ = tokio::time::timeout(wait, changed).await;
    }
    let mut answer = None;
    calls.send_modify(|calls| {
        calls.polls += 1;
        answer = Some(if calls.failing_polls > 0 {
            calls.failing_polls -= 1;
            error(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        } else if !calls.is_plain && known.as_ref() == Some(&tag(calls)) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let objects: Vec<_> = calls.offered.values().cloned().collect();
            let mut response = Json(objects).into_response();
            if !calls.is_plain {
                response.headers_mut().insert(header::ETAG, tag(calls).parse().unwrap());
            }
            response
        });
    });
    answer.unwrap()
}

/// A success on a marker ends it, as with a real server.
async fn event(State(calls): State<Shared>, Json(event): Json<NewAgentEvent>) -> Response {
    let mut answer = StatusCode::CREATED.into_response();
    calls.send_modify(|calls| {
        if calls.failing_events > 0 {
            calls.failing_events -= 1;
            answer = error(StatusCode::SERVICE_UNAVAILABLE, "unavailable");
            return;
        }
        if event.status == "SUCCESS" {
            let id = &event.deployment_object_id;
            calls.offered.retain(|_, object| object.id != *id || !object.is_deletion_marker);
        }
        calls.events.push(event);
    });
    answer
}

async fn health(State(calls): State<Shared>, Json(update): Json<HealthStatusUpdate>) -> StatusCode {
    calls.send_modify(|calls| calls.healths.push(update));
    StatusCode::OK
}

async fn refusal(State(calls): State<Shared>, Json(refusal): Json<PruneRefusal>) -> StatusCode {
    calls.send_modify(|calls| calls.refusals.push(refusal));
    StatusCode::NO_CONTENT
}

async fn confirmations(State(calls): State<Shared>) -> Json<Vec<PruneConfirmation>> {
    let confirmed_at = "2026-01-02T03:04:05Z".to_owned();
    let digests = calls.borrow().confirmed.clone();
    let confirmed = digests.into_iter();
    let of = |digest| PruneConfirmation { confirmed_at: confirmed_at.clone(), digest };
    Json(confirmed.map(of).collect())
}

/// An agent in this process.
pub(crate) struct Agent {
    tell: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Error>>,
}

impl Agent {
    pub(crate) fn start(options: Options) -> Self {
        let (tell, told) = oneshot::channel();
        let task = tokio::spawn(async move {
            run_until(options, async {
                let _ = told.await;
            })
            .await
        });
        Self { tell, task }
    }

    /// Ends it as a signal would, wherever it is.
    pub(crate) async fn stop(self) {
        self.tell.send(()).unwrap();
        tokio::time::timeout(TIMEOUT, self.task).await.unwrap().unwrap().unwrap();
    }

    /// Waits for it to end by itself.
    pub(crate) async fn ending(self) -> Result<(), Error> {
        tokio::time::timeout(TIMEOUT, self.task).await.expect("the agent did not end").unwrap()
    }
}

/// Runs an agent once.
pub(crate) async fn run_once(server: &StandIn, target: Target) -> Result<(), Error> {
    run_until(Options { once: true, ..server.options(target) }, std::future::pending()).await
}

/// A ConfigMap with one value.
pub(crate) fn config_map(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{value: '{value}'}}\n"
    )
}
