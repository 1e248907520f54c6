//! A control plane that serves a real cluster, with a project on it and a
//! blueprint to declare.

use std::path::PathBuf;
use std::time::Duration;

use kube::api::{Api, DynamicObject};
use kube::{Client, ResourceExt};
use reqwest::Method;
use serde_json::{Value, json};
use slipway_standin::AgentMode;
use slipway_testkit::kube::ADMIN;
use slipway_testkit::wait;

use crate::account;
use crate::blueprint::{self, GROUP};
use crate::control_plane::{ControlPlane, TIMEOUT};
use crate::stage::{self, Environment, Playing, Servers, Stage};

pub(crate) use crate::stage::{PROVIDER, resource};

pub(crate) const PROJECT: &str = "shop";
pub(crate) const CLUSTER: &str = "east";
pub(crate) const BLUEPRINT: &str = "server";
const KIND: &str = "XServer";

pub(crate) struct World {
    pub(crate) kubernetes: Servers,
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) journal: PathBuf,
    kubeconfigs: tempfile::TempDir,
    _standin: Playing,
}

/// How the nodes and the control plane are set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) agent: AgentMode,
    pub(crate) strategy: &'a str,
    pub(crate) settings: &'a [&'a str],
    pub(crate) account: Account,
    pub(crate) heartbeat: Duration,
    /// Whether the blueprint installs its definitions; otherwise its kind exists already.
    pub(crate) install_definitions: bool,
    pub(crate) environment: Environment,
}

/// The control plane's account on the cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Account {
    /// A user who may do everything.
    #[default]
    Admin,
    /// The account of `deploy/rbac`.
    Shipped,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            agent: AgentMode::InProcess,
            strategy: "cloud-init-user-data",
            settings: &[],
            account: Account::Admin,
            heartbeat: stage::HEARTBEAT,
            install_definitions: false,
            environment: Environment::Own,
        }
    }
}

impl World {
    /// A cluster with the project Ready on it; `None` where there is no Kubernetes.
    pub(crate) async fn start(test: &str, setup: Setup<'_>) -> Option<Self> {
        Self::start_with(test, setup, ControlPlane::new(None)).await
    }

    /// The same with a control plane that is not started yet.
    pub(crate) async fn start_with(
        test: &str,
        setup: Setup<'_>,
        mut plane: ControlPlane,
    ) -> Option<Self> {
        let stage = match setup.environment {
            Environment::Own => {
                Stage::start(test, setup.agent, Some(plane.url()), setup.heartbeat).await?
            }
            Environment::Shared => Stage::shared(test).await?,
        };
        let Stage { kubernetes, client, journal, standin } = stage;
        let kubeconfigs = tempfile::tempdir().unwrap();
        let kubeconfig = match setup.account {
            Account::Admin => kubernetes.kubeconfig(ADMIN),
            Account::Shipped => account::install(&kubernetes, &client).await,
        };
        std::fs::write(kubeconfigs.path().join(CLUSTER), kubeconfig).unwrap();
        plane.set(&["--kubeconfig-dir", kubeconfigs.path().to_str().unwrap()]);
        plane.set(&["--node-image", "registry.example.org/plexd:1"]);
        plane.set(&["--rate-limit", "10000", "--rate-burst", "10000"]);
        plane.set(setup.settings);
        plane.start().await;
        let world = Self { kubernetes, plane, client, journal, kubeconfigs, _standin: standin };
        if !setup.install_definitions {
            stage::define(&world.client, &blueprint::definition(KIND)).await;
        }
        world.furnish(setup).await;
        let ready = |assignment: &Value| assignment["namespace_phase"] == "Ready";
        world.wait_for_namespace("the namespace to be Ready", ready).await;
        Some(world)
    }

    /// With it the control plane reaches the cluster; it reloads it on a change.
    pub(crate) fn kubeconfig_file(&self) -> PathBuf {
        self.kubeconfigs.path().join(CLUSTER)
    }

    pub(crate) async fn make(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.plane.call(Method::POST, path, Some(body)).await;
        assert!((200..300).contains(&status), "POST {path}: {status} {answer}");
        answer
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.plane.call(Method::PUT, path, Some(body)).await;
        assert!((200..300).contains(&status), "PUT {path}: {status} {answer}");
        answer
    }

    /// Creates everything that a declaration needs.
    async fn furnish(&self, setup: Setup<'_>) {
        let cloud =
            json!({ "name": "cloud", "provider": PROVIDER, "endpoint": { "region": "fsn1" } });
        self.make("/api/v1/clouds", cloud).await;
        self.make("/api/v1/projects", json!({ "name": PROJECT })).await;
        self.make_credential("main").await;
        let cluster = json!({ "name": CLUSTER, "engine": "crossplane", "access": format!("kubeconfig/{CLUSTER}") });
        self.make("/api/v1/clusters", cluster).await;
        self.put(&format!("/api/v1/projects/{PROJECT}/cluster"), json!({ "cluster": CLUSTER }))
            .await;
        self.make_blueprint(BLUEPRINT, setup, &[]).await;
    }

    /// A credential of the cloud that the project may use.
    pub(crate) async fn make_credential(&self, name: &str) {
        let credential = json!({ "cloud": "cloud", "name": name });
        let credential = self.make("/api/v1/credentials", credential).await;
        let credential = credential["id"].as_str().unwrap();
        let path = format!("/api/v1/projects/{PROJECT}/credentials/{credential}");
        self.put(&path, json!({})).await;
    }

    /// A blueprint of the kind, with these parameters beside the usual ones.
    pub(crate) async fn make_blueprint(&self, slug: &str, setup: Setup<'_>, parameters: &[Value]) {
        let blueprint = json!({ "slug": slug, "display_name": "Server", "engine": "crossplane" });
        self.make("/api/v1/blueprints", blueprint).await;
        let size = json!({ "name": "size", "type": "integer", "required": false });
        let usual = [size, standin_parameter()];
        let parameters: Vec<_> = usual.iter().chain(parameters).collect();
        let version = json!({
            "version": "v1",
            "xrd": blueprint::definition(KIND).to_string(),
            "composition": blueprint::composition(KIND).to_string(),
            "parameter_schema": { "parameters": parameters },
            "injection_strategy": setup.strategy,
            "provider_kinds": [PROVIDER],
            "install_definitions": setup.install_definitions,
            "surge": true,
        });
        self.make(&format!("/api/v1/blueprints/{slug}/versions"), version).await;
    }

    pub(crate) async fn declare(&self, handle: &str, script: &str) -> String {
        let mut parameters = json!({ "size": 2 });
        if !script.is_empty() {
            parameters["standin"] = json!(script);
        }
        let body = json!({
            "project": PROJECT, "handle": handle, "blueprint": BLUEPRINT, "parameters": parameters,
        });
        let declared = self.make("/api/v1/resources", body).await;
        declared["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn assignment(&self) -> Value {
        self.plane.get(&format!("/api/v1/projects/{PROJECT}/cluster")).await
    }

    pub(crate) async fn wait_for_namespace(
        &self,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        wait::until(TIMEOUT, what, async || {
            let assignment = self.assignment().await;
            if wanted(&assignment) {
                return Ok(assignment);
            }
            let cluster = self.plane.get(&format!("/api/v1/clusters/{CLUSTER}")).await;
            let status = self.plane.get("/api/v1/loops").await;
            Err(format!("{assignment}\n{cluster}\n{status}\n{}", self.plane.log_tail()))
        })
        .await
    }

    pub(crate) async fn namespace(&self) -> String {
        self.assignment().await["namespace"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn composites(&self) -> Api<DynamicObject> {
        let kind = resource(&format!("{GROUP}/v1"), KIND, &blueprint::plural(KIND));
        Api::namespaced_with(self.client.clone(), &self.namespace().await, &kind)
    }

    /// The objects of a kind in the project's namespace, by name.
    pub(crate) async fn names_of(
        &self,
        api_version: &str,
        kind: &str,
        plural: &str,
    ) -> Vec<String> {
        let kind = resource(api_version, kind, plural);
        let api = Api::<DynamicObject>::namespaced_with(
            self.client.clone(),
            &self.namespace().await,
            &kind,
        );
        let found = api.list(&kube::api::ListParams::default()).await.unwrap();
        found.items.iter().map(ResourceExt::name_any).collect()
    }

    /// The agents' entries, in the order of their journal.
    pub(crate) fn journal(&self) -> Vec<Value> {
        stage::read_lines(&self.journal)
    }

    pub(crate) async fn xr_name(&self, id: &str) -> String {
        self.plane.resource(id).await["attempt"]["xr_name"].as_str().unwrap().to_owned()
    }
}

/// Through this parameter a test passes a composite's script to the stand-in.
fn standin_parameter() -> Value {
    json!({ "name": "standin", "type": "string", "required": false })
}
