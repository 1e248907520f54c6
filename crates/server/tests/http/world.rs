//! A server on a fresh database, and helpers to call it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use serde_json::Value;
use slipway_app::Context;
use slipway_app::access::authenticate;
use slipway_app::broker::converge::Engines;
use slipway_app::broker::port::ResourceKey;
use slipway_app::context::{Settings, Wakes};
use slipway_app::deletion::leaks::Finder;
use slipway_app::ports::meter::Unmetered;
use slipway_app::ports::templates::{RenderFailure, TemplateRenderer};
use slipway_app::ports::{Clock, Entropy, Stores, Substrate};
use slipway_app::seed::{LocalNames, Seed};
use slipway_core::access::audit::Actor;
use slipway_core::access::rate::Rate;
use slipway_core::blocker::Deadlines;
use slipway_core::broker::prepare::{FreshToken, Read, prepare};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Write};
use slipway_core::ids::{BootstrapTokenId, DrainId, ResourceId};
use slipway_core::nodes::NodesWrite;
use slipway_core::nodes::node::{Drain, Node};
use slipway_core::nodes::token::{Carried, TokenDecision, TokenKind, TokenLifetimes, TokenText};
use slipway_core::secret::Secret;
use slipway_core::time::Timestamp;
use slipway_render::local_node;
use slipway_server::{
    EventStreams, LoopsView, Metrics, NodeSettings, RateLimits, ServerState, StreamLimits, router,
};
use slipway_store::StoreConfig;
use slipway_wire::operations::{LoopStatus, Probe};
use sqlx::Connection as _;
use tokio::sync::watch;
use tower::ServiceExt;
use uuid::Uuid;

pub(crate) const KEY: &str = "slipway_12345678_abcdefghijkmnopqrstuvwxyz";

pub(crate) struct World {
    pub(crate) context: Context,
    pub(crate) loops_ok: Arc<AtomicBool>,
    /// Ends every stream.
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) file: PathBuf,
    router: Router,
    state: ServerState,
    engine_settings: local_node::NodeSettings,
    _directory: tempfile::TempDir,
}

/// An answer with its complete body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}"));
        value.to_str().unwrap()
    }

    /// Checks status and code of a problem; returns the field it names.
    pub(crate) fn refused(&self, status: u16, code: &str) -> Option<String> {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{self:?}");
        problem["details"]["field"].as_str().map(str::to_owned)
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(StreamLimits::default()).await
    }

    pub(crate) async fn with(limits: StreamLimits) -> Self {
        Self::limited(limits, Rate { per_second: 1_000_000, burst: 1_000_000 }).await
    }

    pub(crate) async fn limited(limits: StreamLimits, rate: Rate) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("slipway.db").display());
        Self::start(url, directory, limits, rate).await
    }

    /// On another database.
    pub(crate) async fn on(url: &str) -> Self {
        let rate = Rate { per_second: 1_000_000, burst: 1_000_000 };
        let directory = tempfile::tempdir().unwrap();
        Self::start(url.to_owned(), directory, StreamLimits::default(), rate).await
    }

    async fn start(
        url: String,
        directory: tempfile::TempDir,
        limits: StreamLimits,
        rate: Rate,
    ) -> Self {
        let file = directory.path().join("slipway.db");
        let context = Context {
            stores: slipway_store::open(StoreConfig::new(url)).await.unwrap(),
            clock: Arc::new(FixedClock),
            entropy: Arc::new(Counting::default()),
            wakes: Wakes::default(),
            meter: Arc::new(Unmetered),
            templates: Arc::new(InProcess),
            tenants: Arc::new(slipway_app::tenants::targets::NoTargets),
            inventories: slipway_app::topology::inventory::Inventories::default(),
            settings: Settings {
                deadlines: Deadlines::default(),
                claimed_within: Duration::from_secs(60),
                token_lifetimes: TokenLifetimes::default(),
                token_environment: "live".to_owned(),
                namespace_prefix: slipway_core::placement::cluster::NamespacePrefix::from_stored(
                    "slipway-project-".to_owned(),
                ),
                deletion: slipway_core::deletion::door::Defaults::default(),
                brake: slipway_core::deletion::brake::Limits::default(),
            },
        };
        let seed = Seed::local(
            &*context.entropy,
            LocalNames {
                project: "default".to_owned(),
                cluster: "local".to_owned(),
                substrate_uid: "root-1".to_owned(),
                namespace_prefix: "p-".to_owned(),
            },
        )
        .unwrap();
        context.stores.operations.seed(&seed).await.unwrap();
        let actor = Actor::new("test");
        let key = Secret::new(KEY);
        authenticate::install_admin_key(&context, "admin", &key, &actor).await.unwrap();
        let (stop, _) = watch::channel(false);
        let loops_ok = Arc::new(AtomicBool::new(true));
        // No engine: what needs one is refused, as these tests expect.
        let settings = local_node::NodeSettings {
            installation: context.stores.operations.installation().await.unwrap(),
            public_url: "http://127.0.0.1:1".to_owned(),
            heartbeat_interval_ms: 1_000,
            orphan_after_ms: 1_000,
            node_image: None,
            authorities: None,
        };
        let engines = Engines::new(settings.clone());
        let state = ServerState {
            finder: Finder::new(context.clone(), engines, Arc::default(), Duration::from_secs(30)),
            context: context.clone(),
            node_settings: NodeSettings {
                signing_public_key: "c2lnbmluZw==".to_owned(),
                signing_key_id: "key-1".to_owned(),
                public_url: "http://127.0.0.1:1".to_owned(),
                authorities: None,
            },
            loops: Arc::new(FixedLoops { ok: Arc::clone(&loops_ok) }),
            metrics: Arc::new(Metrics::with_loops().0),
            streams: EventStreams::new(context.clone(), limits, stop.subscribe()),
            key_rates: Arc::new(RateLimits::of_keys(rate)),
            node_rates: Arc::new(RateLimits::of_nodes(rate)),
        };
        let router = router(state.clone());
        let engine_settings = settings;
        Self {
            context,
            loops_ok,
            stop,
            file,
            router,
            state,
            engine_settings,
            _directory: directory,
        }
    }

    /// Serves the local cluster with this engine.
    pub(crate) async fn serving(self, substrate: Arc<dyn Substrate>) -> Self {
        let mut state = self.state.clone();
        let clusters = self.context.stores.placement.cluster_list().await.unwrap();
        let local = clusters.iter().find(|cluster| cluster.name == "local").unwrap();
        let engines = Engines::new(self.engine_settings.clone());
        let engines = engines.serving(local.id.into(), "local", substrate);
        let lease = Duration::from_secs(30);
        state.finder = Finder::new(self.context.clone(), engines, Arc::default(), lease);
        Self { router: router(state), ..self }
    }

    /// Lists the servers of workspaces on the local cluster by this engine.
    pub(crate) async fn listed_by(&self, substrate: Arc<dyn Substrate>) {
        let clusters = self.context.stores.placement.cluster_list().await.unwrap();
        let local = clusters.iter().find(|cluster| cluster.name == "local").unwrap();
        let engines = Engines::new(self.engine_settings.clone());
        let engines = engines.serving(local.id.into(), "local", substrate);
        self.context.inventories.connect(engines, Duration::from_secs(5));
    }

    /// Puts something between the handlers and the store.
    pub(crate) fn intercepted(self, wrap: impl FnOnce(Stores) -> Stores) -> Self {
        let mut state = self.state.clone();
        state.context.stores = wrap(state.context.stores);
        Self { router: router(state), ..self }
    }

    /// Assigns positions to all events, as the relay does.
    pub(crate) async fn relay(&self) {
        while self.context.stores.events.outbox_relay(100).await.unwrap() > 0 {}
        self.context.wakes.relayed();
    }

    /// Sends a request and returns the answer before reading its body.
    pub(crate) async fn open(&self, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        self.open_as(KEY, path, headers).await
    }

    pub(crate) async fn open_as(
        &self,
        key: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<Body> {
        let mut request = Request::get(path).header("authorization", format!("Bearer {key}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 1 << 24).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, key: &str, body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !key.is_empty() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Sends a request with the key and one more header.
    pub(crate) async fn ask_with(
        &self,
        method: &str,
        path: &str,
        header: (&str, &str),
        body: &str,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {KEY}"))
            .header(header.0, header.1)
            .body(Body::from(body.to_owned()))
            .unwrap();
        self.send(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, KEY, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.ask("POST", path, KEY, body).await
    }

    /// Creates an object and returns its document.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, &body.to_string()).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer.json()
    }

    pub(crate) async fn declare(&self, handle: &str) -> String {
        let body = format!(r#"{{"handle":"{handle}","blueprint":"local-node"}}"#);
        let answer = self.post("/api/v1/resources", &body).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Ids count up here. The next one differs from those before in more than its last digit.
    pub(crate) fn skip_ids(&self) {
        while !self.context.entropy.uuid().to_string().ends_with('f') {}
    }

    /// Issues a bootstrap token for a resource, as the loop does before an apply.
    pub(crate) async fn mint_token(&self, resource: &str) -> String {
        self.mint_token_of(resource, TokenKind::Node, Duration::from_secs(3_600)).await
    }

    /// Issues a token with another kind in its text, or another lifetime.
    pub(crate) async fn mint_token_of(
        &self,
        resource: &str,
        kind: TokenKind,
        ttl: Duration,
    ) -> String {
        let id: ResourceId = resource.parse().unwrap();
        let found = self.context.stores.broker.resource_fetch(id).await.unwrap().unwrap();
        let mut random = [0; 32];
        self.context.entropy.fill(&mut random);
        let token = TokenText::mint("live", found.resource.project_id, kind, &random);
        let fresh = FreshToken {
            id: BootstrapTokenId::new(self.context.entropy.uuid()),
            hash: TokenText::parse(token.expose()).unwrap().hash,
        };
        self.decide(id, |snapshot| {
            let read = Read::of(snapshot);
            let decision = TokenDecision::Mint {
                expires_at: snapshot.now.plus(ttl),
                hard_expires_at: snapshot.now.plus(Duration::from_secs(86_400)),
            };
            prepare(snapshot, read, decision, Carried::Nothing, Some(fresh), &Actor::new("test"))
                .unwrap()
        })
        .await;
        token.expose().to_owned()
    }

    /// Sets the phase of a resource's attempt, as if the loop had decided it.
    pub(crate) async fn set_phase(&self, resource: &str, phase: &str) {
        let url = format!("sqlite:{}", self.file.display());
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        sqlx::query("UPDATE provisioned_resources SET status = $1 WHERE resource_id = $2")
            .bind(phase)
            .bind(resource.parse::<Uuid>().unwrap())
            .execute(&mut connection)
            .await
            .unwrap();
    }

    /// Lets a resource fail for this reason, as if the loop had observed it.
    pub(crate) async fn fail(&self, resource: &str, reason: &str) {
        self.set_phase(resource, "Failed").await;
        let url = format!("sqlite:{}", self.file.display());
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        sqlx::query(
            "UPDATE provisioned_resources SET failure_reason = $1, failed_at = phase_since, \
             failure_observed = '{}' WHERE resource_id = $2",
        )
        .bind(reason)
        .bind(resource.parse::<Uuid>().unwrap())
        .execute(&mut connection)
        .await
        .unwrap();
    }

    /// Adds this many lines to the history of a resource's attempt, by plain SQL.
    pub(crate) async fn flap(&self, resource: &str, turns: i64) {
        let url = format!("sqlite:{}", self.file.display());
        let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
        sqlx::query(
            "WITH RECURSIVE turn (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM turn \
             WHERE number < $2) INSERT INTO state_changes (subject_id, revision, from_state, \
             to_state, why) SELECT a.id, a.revision + turn.number, 'Ready', 'Provisioning', \
             'turn ' || turn.number FROM turn, provisioned_resources a WHERE a.resource_id = $1",
        )
        .bind(resource.parse::<Uuid>().unwrap())
        .bind(turns)
        .execute(&mut connection)
        .await
        .unwrap();
    }

    /// Asks the node of a resource to drain, as the loop does in Deregistering.
    pub(crate) async fn request_drain(&self, resource: &str) -> String {
        let drain_id = DrainId::new(self.context.entropy.uuid());
        self.decide(resource.parse().unwrap(), |snapshot| {
            let drain = Drain { id: drain_id, requested_at: snapshot.now };
            let node = snapshot.node.clone().unwrap();
            Commit {
                writes: vec![Write::Nodes(NodesWrite::NodeUpdate(Node {
                    drain: Some(drain),
                    ..node
                }))],
                ..Commit::default()
            }
        })
        .await;
        drain_id.to_string()
    }

    async fn decide(
        &self,
        id: ResourceId,
        rule: impl Fn(&ResourceSnapshot) -> Commit + Send + Sync,
    ) {
        let key = ResourceKey::Resource(id);
        self.context.stores.broker.decide(key, &mut |snapshot| Ok(rule(snapshot))).await.unwrap();
    }
}

/// A fixed time: only displayed values depend on this clock.
#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        "2026-01-31T12:00:00Z".parse().unwrap()
    }
}

/// Ascending ids, so that lists are in the order of creation.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn uuid(&self) -> Uuid {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        Uuid::from_u128((0x0192_f0c1_2b3c_7d4e_8f50 << 48) + 1 + u128::from(count))
    }

    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).unwrap();
    }
}

/// The binary renders in a process of its own.
#[derive(Debug)]
struct InProcess;

#[async_trait]
impl TemplateRenderer for InProcess {
    async fn check(&self, template: &str) -> Result<(), RenderFailure> {
        slipway_render::template::check(template).map_err(RenderFailure::Template)
    }

    async fn render(&self, template: &str, parameters: &Value) -> Result<String, RenderFailure> {
        slipway_render::template::render(template, parameters).map_err(RenderFailure::Template)
    }
}

#[derive(Debug)]
struct FixedLoops {
    ok: Arc<AtomicBool>,
}

#[async_trait]
impl LoopsView for FixedLoops {
    fn statuses(&self) -> Vec<LoopStatus> {
        vec![LoopStatus {
            name: "resources".to_owned(),
            activations: 3,
            last_activation_at: None,
            last_error: None,
            claimed: 2,
            failed: 0,
        }]
    }

    async fn probes(&self, _within: Duration) -> Vec<Probe> {
        let ok = self.ok.load(Ordering::Relaxed);
        vec![Probe { name: "sweep".to_owned(), ok, detail: "fixed".to_owned() }]
    }
}
