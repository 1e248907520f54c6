//! A real cluster, prepared as its operator would, with the stand-in playing
//! Crossplane on it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use slipway_standin::{AgentMode, Options as Standin};
use slipway_testkit::kube::{ADMIN, KubeEnvironment, OTHER_ADMIN, Options, shared};
use slipway_testkit::wait;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use crate::control_plane::TIMEOUT;

pub(crate) const PROVIDER: &str = "hetzner";

/// Short, so that a node learns of a drain at once.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(100);

pub(crate) struct Stage {
    pub(crate) kubernetes: Servers,
    pub(crate) client: Client,
    /// The agents' journal, one JSON line per entry.
    pub(crate) journal: PathBuf,
    pub(crate) standin: Playing,
}

/// The servers of a test. Starting its own takes six seconds of a core.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Environment {
    /// For a test that stops servers, removes kinds, counts objects on the
    /// whole cluster or needs other options of the stand-in.
    #[default]
    Own,
    /// For a test that only uses its own project. This stand-in has in-process
    /// agents and the usual heartbeat, and knows no control plane.
    Shared,
}

/// The servers of a test; its own end with it.
pub(crate) enum Servers {
    Own(Box<KubeEnvironment>),
    Shared(&'static KubeEnvironment),
}

impl Deref for Servers {
    type Target = KubeEnvironment;

    fn deref(&self) -> &KubeEnvironment {
        match self {
            Self::Own(environment) => environment,
            Self::Shared(environment) => environment,
        }
    }
}

/// The stand-in; drop ends it, except that of the shared servers.
pub(crate) struct Playing(Option<JoinHandle<()>>);

impl Drop for Playing {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

impl Stage {
    /// `None` without Kubernetes. Nodes whose configuration does not name their
    /// control plane use `api_url`, and this heartbeat.
    pub(crate) async fn start(
        test: &str,
        agent: AgentMode,
        api_url: Option<String>,
        heartbeat: Duration,
    ) -> Option<Self> {
        let options = Options { controller_manager: true, ..Options::default() };
        let kubernetes = KubeEnvironment::for_test(test, options).await?;
        let client = kubernetes.client(ADMIN).await.expect("a client");
        make_system_namespace(&client).await;
        let journal = kubernetes.folder().join("journal");
        let options = standin(&kubernetes, agent, api_url, heartbeat);
        let other = kubernetes.client(OTHER_ADMIN).await.expect("a client");
        let standin = Playing(Some(tokio::spawn(play(other, options))));
        Some(Self { kubernetes: Servers::Own(Box::new(kubernetes)), client, journal, standin })
    }

    /// The stage that tests of this process share.
    pub(crate) async fn shared(test: &str) -> Option<Self> {
        static PREPARED: OnceCell<()> = OnceCell::const_new();
        let kubernetes = shared(test).await?;
        let client = kubernetes.client(ADMIN).await.expect("a client");
        let prepare = async || {
            make_system_namespace(&client).await;
            let options = standin(kubernetes, AgentMode::InProcess, None, HEARTBEAT);
            // On its own runtime: that of the first test ends with the test.
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(async {
                    let other = kubernetes.client(OTHER_ADMIN).await.expect("a client");
                    play(other, options).await;
                });
            });
        };
        PREPARED.get_or_init(prepare).await;
        let journal = kubernetes.folder().join("journal");
        let (kubernetes, standin) = (Servers::Shared(kubernetes), Playing(None));
        Some(Self { kubernetes, client, journal, standin })
    }
}

/// Holds the high-water mark.
async fn make_system_namespace(client: &Client) {
    let system: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "slipway-system" } })).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &system).await.unwrap();
}

fn standin(
    kubernetes: &KubeEnvironment,
    agent: AgentMode,
    api_url: Option<String>,
    heartbeat: Duration,
) -> Standin {
    Standin {
        install: true,
        providers: vec![PROVIDER.to_owned()],
        agent,
        agent_program: Some(PathBuf::from(env!("CARGO_BIN_EXE_slipway"))),
        agent_folder: Some(kubernetes.folder().join("agents")),
        api_url,
        heartbeat: Some(heartbeat),
        journal: Some(kubernetes.folder().join("journal")),
        ..Standin::default()
    }
}

async fn play(client: Client, options: Standin) {
    slipway_standin::run(client, options).await.expect("the stand-in begins");
}

/// Defines a kind of composites on the cluster.
pub(crate) async fn define(client: &Client, definition: &Value) {
    let definitions = resource(
        "apiextensions.crossplane.io/v2",
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
    );
    wait::until(TIMEOUT, "the kind of composites", async || {
        let api = Api::<DynamicObject>::all_with(client.clone(), &definitions);
        let name = definition["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply("tests").force();
        let made = api.patch(name, &parameters, &Patch::Apply(definition)).await;
        let made = made.map_err(|error| error.to_string())?;
        let conditions = made.data["status"]["conditions"].as_array().cloned();
        let established = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
        if established { Ok(()) } else { Err(made.data.to_string()) }
    })
    .await;
}

/// The agents' entries, in the order of their journal.
pub(crate) fn read_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
