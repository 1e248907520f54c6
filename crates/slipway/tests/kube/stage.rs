//! A real cluster that is prepared as whoever runs one would, with the stand-in
//! playing Crossplane on it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use slipway_standin::{AgentMode, Options as Standin};
use slipway_testkit::kube::{ADMIN, KubeEnvironment, OTHER_ADMIN, Options};
use slipway_testkit::wait;
use tokio::task::JoinHandle;

use crate::control_plane::PATIENCE;

pub(crate) const PROVIDER: &str = "hetzner";

/// Often, so that a drain is heard of at once.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(100);

pub(crate) struct Stage {
    pub(crate) kubernetes: KubeEnvironment,
    pub(crate) client: Client,
    /// What agents did, a JSON line each.
    pub(crate) journal: PathBuf,
    pub(crate) standin: Playing,
}

/// The stand-in, until this goes.
pub(crate) struct Playing(JoinHandle<()>);

impl Drop for Playing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Stage {
    /// `None` where there is no Kubernetes. Nodes to which nobody says where
    /// their control plane is ask `api_url`.
    pub(crate) async fn start(
        test: &str,
        agent: AgentMode,
        api_url: Option<String>,
    ) -> Option<Self> {
        Self::start_beating(test, agent, api_url, HEARTBEAT).await
    }

    /// The same, with nodes that are heard of this often.
    pub(crate) async fn start_beating(
        test: &str,
        agent: AgentMode,
        api_url: Option<String>,
        heartbeat: Duration,
    ) -> Option<Self> {
        let options = Options { controller_manager: true, ..Options::default() };
        let kubernetes = KubeEnvironment::for_test(test, options).await?;
        let client = kubernetes.client(ADMIN).await.expect("a client");
        // For the witness.
        let system: Namespace =
            serde_json::from_value(json!({ "metadata": { "name": "slipway-system" } })).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &system).await.unwrap();
        let journal = kubernetes.folder().join("journal");
        let standin = Standin {
            install: true,
            providers: vec![PROVIDER.to_owned()],
            agent,
            agent_program: Some(PathBuf::from(env!("CARGO_BIN_EXE_slipway"))),
            agent_folder: Some(kubernetes.folder().join("agents")),
            api_url,
            heartbeat: Some(heartbeat),
            journal: Some(journal.clone()),
            ..Standin::default()
        };
        let other = kubernetes.client(OTHER_ADMIN).await.expect("a client");
        let standin = Playing(tokio::spawn(async move {
            slipway_standin::run(other, standin).await.expect("the stand-in begins");
        }));
        Some(Self { kubernetes, client, journal, standin })
    }
}

/// Has the cluster know a kind of composites.
pub(crate) async fn define(client: &Client, definition: &Value) {
    let definitions = resource(
        "apiextensions.crossplane.io/v2",
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
    );
    wait::until(PATIENCE, "the kind of composites", async || {
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

/// What the agents did, in the order of their journal.
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
