//! A control plane under test: the launcher of the testkit with the settings of
//! these tests, a client, and assertions on resources and their agents.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_testkit::control_plane::{Config, ControlPlane as Launcher, clean};
use slipway_testkit::memory;
use slipway_testkit::postgres::{self, TestDatabase};
use slipway_testkit::preload::Orders;
use slipway_testkit::process::{Process, Signal};
use slipway_testkit::wait;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);
pub(crate) const KEY: &str = "slipway_testtest_abcdefghijkmnopqrstuvwxyz";

/// They make waits short, and let one key delete everything.
const USUAL: [&str; 12] = [
    "--deletion-brake",
    "0",
    "--heartbeat-interval",
    "100ms",
    "--orphan-after",
    "30s",
    "--reconcile-interval",
    "2s",
    "--stop-grace",
    "1s",
    "--deregistering-deadline",
    "1s",
];

/// The program under test.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_slipway"))
}

pub(crate) fn binary() -> Command {
    clean(program())
}

/// A client for plain HTTP on loopback, without a proxy.
pub(crate) fn client() -> reqwest::Client {
    // A second test of the process finds a provider installed, which is fine.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    // The server closes a connection that is idle for ten seconds; a request that meets that
    // moment would be lost, and on a busy machine a moment is long. So each has its own.
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
}

/// One control plane, running or killed.
pub(crate) struct ControlPlane {
    launcher: Launcher,
    // Dropped after the process that uses them.
    folder: tempfile::TempDir,
    _database: Option<TestDatabase>,
    client: reqwest::Client,
}

impl ControlPlane {
    /// One per available database, not yet started.
    pub(crate) async fn each(test: &str) -> Vec<Self> {
        let mut planes = vec![Self::new(None)];
        if let Some(server) = postgres::shared(test).await {
            planes.push(Self::new(Some(server.database("system").await)));
        }
        planes
    }

    pub(crate) fn new(database: Option<TestDatabase>) -> Self {
        let folder = memory::tempdir().unwrap();
        let mut config = Config::new(program(), folder.path(), KEY).unwrap();
        config.database_url = database.as_ref().map(|database| database.url().to_owned());
        config.set(&USUAL);
        Self { launcher: Launcher::new(config), folder, _database: database, client: client() }
    }

    /// Uses the database at this URL, which the test owns.
    pub(crate) fn on_database(&mut self, url: &str) {
        self.launcher.config.database_url = Some(url.to_owned());
    }

    /// `None` for SQLite in the data directory.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.launcher.config.database_url.as_deref()
    }

    /// A second replica on the same database and the same nodes, with the same
    /// settings and its own data directory. `self` has to outlive it.
    pub(crate) fn beside(&self) -> Self {
        let mut other = Self::new(None);
        let (config, ours) = (&mut other.launcher.config, &self.launcher.config);
        config.database_url.clone_from(&ours.database_url);
        config.substrate_root = Some(ours.substrate_root());
        config.flags.clone_from(&ours.flags);
        other
    }

    /// A replacement: the same nodes at the same address, with its own data
    /// directory. `self` has to outlive it, stopped.
    pub(crate) fn successor(&self) -> Self {
        let mut other = self.beside();
        other.launcher.config.port = self.launcher.config.port;
        other
    }

    /// Sets flags from the next start on, such as `--lease 3s`; a flag without
    /// a value stands alone.
    pub(crate) fn set(&mut self, settings: &[&str]) {
        self.launcher.config.set(settings);
    }

    /// Sets this variable from the next start on.
    pub(crate) fn set_environment(&mut self, name: &str, value: &str) {
        self.launcher.config.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Puts its processes under the returned orders.
    pub(crate) fn take_orders(&mut self) -> Orders {
        let orders = Orders::in_folder(self.folder.path()).unwrap();
        for (name, path) in orders.environment() {
            self.set_environment(name, path.to_str().unwrap());
        }
        orders
    }

    pub(crate) fn substrate_root(&self) -> PathBuf {
        self.launcher.config.substrate_root()
    }

    /// Canonical, as in the engine and therefore the process table.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.launcher.config.data_dir()
    }

    pub(crate) fn url(&self) -> String {
        self.launcher.config.url()
    }

    /// The `slipway up` command with its settings.
    pub(crate) fn command(&self) -> Command {
        self.launcher.config.command()
    }

    pub(crate) async fn start(&mut self) {
        self.launcher.start(TIMEOUT).await.unwrap();
    }

    /// Starts the process and does not wait until it is up.
    pub(crate) fn launch(&mut self) {
        self.launcher.launch().unwrap();
    }

    pub(crate) fn log_text(&self) -> String {
        self.launcher.log_text()
    }

    pub(crate) fn log_tail(&self) -> String {
        self.launcher.log_tail(&[])
    }

    /// SIGKILL: no orderly stop.
    pub(crate) fn kill(&mut self) {
        self.launcher.kill();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.launcher.pid().unwrap()
    }

    /// The most memory that the process ever had, in bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.launcher.pid().unwrap()));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Mostly SIGSTOP and SIGCONT.
    pub(crate) fn signal(&self, signal: Signal) {
        self.launcher.signal(signal).unwrap();
    }

    /// Waits until it ends by itself; returns its exit status.
    pub(crate) async fn ended(&mut self) -> std::process::ExitStatus {
        self.launcher.exit(TIMEOUT).await.unwrap()
    }

    /// Sends SIGTERM; it must then end by itself.
    pub(crate) async fn stop(&mut self) {
        self.signal(Signal::Terminate);
        let status = self.ended().await;
        assert!(status.success(), "it ended with {status}: {}", self.log_tail());
        assert!(!self.launcher.serves());
    }

    pub(crate) async fn call(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let response = self.send(method, path, body).await;
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null))
    }

    /// The answer with its headers.
    pub(crate) async fn send(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<Value>,
    ) -> reqwest::Response {
        let mut request =
            self.client.request(method, format!("{}{path}", self.url())).bearer_auth(KEY);
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await.unwrap()
    }

    /// Status and text of `/readyz`.
    pub(crate) async fn readiness(&self) -> (u16, String) {
        let response = self.send(reqwest::Method::GET, "/readyz", None).await;
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// Waits until `/readyz` says that it is ready, as a load balancer would.
    pub(crate) async fn wait_until_ready(&self) {
        wait::until(TIMEOUT, "the control plane to be ready", async || {
            match self.readiness().await {
                (200, _) => Ok(()),
                (_, text) => Err(format!("{text}\n{}", self.log_tail())),
            }
        })
        .await;
    }

    /// A declaration is refused because of the database's state: soon, with
    /// this code, and with the time of a retry.
    pub(crate) async fn assert_refused_for_now(&self, handle: &str, code: &str) {
        let body = json!({ "handle": handle, "blueprint": "local-node" });
        let response = self.send(reqwest::Method::POST, "/api/v1/resources", Some(body)).await;
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after").cloned();
        let problem: Value = response.json().await.unwrap();
        assert_eq!((status, problem["code"].as_str()), (503, Some(code)), "{problem}");
        assert_eq!(retry_after.unwrap(), "1");
    }

    /// A resource comes up and is deleted, with each event once.
    pub(crate) async fn assert_works(&self, handle: &str) {
        let id = self.declare(handle, 0).await;
        self.wait_for_phase(&id, "Ready").await;
        self.assert_goes(&id).await;
    }

    /// A resource that is Ready is deleted, with each event once.
    pub(crate) async fn assert_goes(&self, id: &str) {
        self.delete(id).await;
        self.wait_for_phase(id, "Deleted").await;
        self.assert_each_event_once(id, &["Requested", "Ready", "Deleting", "Deleted"]).await;
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(reqwest::Method::GET, path, None).await;
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    /// Declares a `local-node`; returns its id.
    pub(crate) async fn declare(&self, handle: &str, busy_seconds: u64) -> String {
        let body = json!({
            "handle": handle,
            "blueprint": "local-node",
            "parameters": { "busy_seconds": busy_seconds },
        });
        let (status, body) =
            self.call(reqwest::Method::POST, "/api/v1/resources", Some(body)).await;
        assert_eq!(status, 202, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }

    /// Declares a `local-node` without waiting for the answer, which comes on
    /// the returned connection: the control plane may be stopped before it
    /// answers.
    pub(crate) fn declare_unanswered(&self, handle: &str) -> TcpStream {
        let body = json!({ "handle": handle, "blueprint": "local-node" });
        self.launcher.client().send("POST", "/api/v1/resources", Some(&body)).unwrap()
    }

    pub(crate) async fn delete(&self, id: &str) {
        let path = format!("/api/v1/resources/{id}?reason=test");
        let (status, body) = self.call(reqwest::Method::DELETE, &path, None).await;
        assert_eq!(status, 202, "{body}");
    }

    pub(crate) async fn resource(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/resources/{id}")).await
    }

    pub(crate) async fn wait_for_phase(&self, id: &str, phase: &str) -> Value {
        self.wait_for(id, phase, |resource| resource["phase"] == phase).await
    }

    pub(crate) async fn wait_for(
        &self,
        id: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        wait::until(TIMEOUT, &format!("{id} to be {what}"), async || {
            let resource = self.resource(id).await;
            if wanted(&resource) {
                Ok(resource)
            } else {
                Err(format!("{resource}\n{}", self.log_tail()))
            }
        })
        .await
    }

    /// The living agents of this control plane's substrate.
    pub(crate) fn agents(&self) -> Vec<Process> {
        self.launcher.agents().unwrap()
    }

    /// The agents of one composite.
    pub(crate) fn agents_of(&self, xr_name: &str) -> Vec<Process> {
        let mut found = self.agents();
        found.retain(|process| process.command_line.contains(xr_name));
        found
    }

    /// The one agent of a resource.
    pub(crate) async fn agent(&self, id: &str) -> Process {
        let resource = self.resource(id).await;
        let xr_name = resource["attempt"]["xr_name"].as_str().unwrap();
        let agents = self.agents_of(xr_name);
        assert_eq!(agents.len(), 1, "{agents:?}");
        agents.into_iter().next().unwrap()
    }

    /// The directory of the one agent of a resource, its last argument.
    pub(crate) async fn node_directory(&self, id: &str) -> PathBuf {
        let agent = self.agent(id).await;
        PathBuf::from(agent.command_line.split_whitespace().last().unwrap())
    }

    /// Every event as (aggregate, type), in order of position.
    pub(crate) async fn events(&self) -> Vec<(String, String)> {
        let events = self.get("/api/v1/events?limit=500").await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let events = events.as_array().unwrap();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(event["position"], json!(index + 1), "positions are dense");
        }
        events.iter().map(|event| (text(&event["aggregate_id"]), text(&event["type"]))).collect()
    }

    /// Waits until every event has its position, then checks that each of these
    /// happened exactly once to the attempt.
    pub(crate) async fn assert_each_event_once(&self, id: &str, expected: &[&str]) {
        let attempt = self.resource(id).await["attempt"]["id"].as_str().unwrap().to_owned();
        let of_attempt = async || {
            let events =
                self.events().await.into_iter().filter(|(aggregate, _)| *aggregate == attempt);
            events
                .map(|(_, kind)| kind.replace("broker.ProvisionedResource", ""))
                .collect::<Vec<_>>()
        };
        wait::until(TIMEOUT, "the events to be relayed", async || {
            of_attempt().await.len() >= expected.len()
        })
        .await;
        assert_eq!(of_attempt().await, expected);
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.data_dir().join(path)).unwrap()
    }
}
