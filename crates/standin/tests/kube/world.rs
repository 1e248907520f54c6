//! What the tests share: the environment with its stand-in, and objects.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use slipway_testkit::kube::{ADMIN, KubeEnvironment, OTHER_ADMIN, shared};
use slipway_testkit::wait::until;
use tokio::sync::OnceCell;

/// Seconds on an idle machine; the rest is for a busy one.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);
const PROGRAM: &str = env!("CARGO_BIN_EXE_crossplane-standin");

/// The namespace of one test, served by the shared stand-in.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) journal: PathBuf,
}

/// `None` without Kubernetes.
pub(crate) async fn world(test: &str) -> Option<World> {
    static STARTED: OnceCell<()> = OnceCell::const_new();
    let kubernetes = shared(test).await?;
    let journal = kubernetes.folder().join("journal");
    STARTED.get_or_init(|| start_program(kubernetes, "in-process", &journal)).await;
    let client = kubernetes.client(ADMIN).await.expect("a client");
    until_installed(&client, kubernetes).await;
    let namespace = test.replace('_', "-").chars().take(60).collect::<String>();
    let namespace = namespace.trim_matches('-').to_owned();
    make_namespace(&client, &namespace).await;
    Some(World { client, namespace, journal })
}

/// Starts the stand-in as a program, under another user than the tests.
pub(crate) async fn start_program(kubernetes: &KubeEnvironment, agent: &str, journal: &Path) {
    let kubeconfig = kubernetes.kubeconfig_file(OTHER_ADMIN).expect("a kubeconfig");
    let agents = kubernetes.folder().join("agents");
    let arguments = [
        "--kubeconfig",
        kubeconfig.to_str().expect("a plain path"),
        "--install",
        "--provider",
        "hetzner",
        "--agent",
        agent,
        "--agent-folder",
        agents.to_str().expect("a plain path"),
        "--journal",
        journal.to_str().expect("a plain path"),
    ];
    let arguments = arguments.map(str::to_owned);
    kubernetes.run_beside("standin", Path::new(PROGRAM), &arguments).await.expect("started");
}

/// Waits until definitions can be created, and creates one for all tests.
pub(crate) async fn until_installed(client: &Client, kubernetes: &KubeEnvironment) {
    until(TIMEOUT, "the kind of the composites", async || {
        apply(client, &definitions(), None, &definition("xservers", "XServer"))
            .await
            .map_err(|error| format!("{error}\n{}", kubernetes.end_of_log("standin")))
    })
    .await;
    until_established(client, "xservers.example.org").await;
}

pub(crate) async fn until_established(client: &Client, name: &str) {
    let api = Api::<DynamicObject>::all_with(client.clone(), &definitions());
    until(TIMEOUT, "the definition to be Established", async || {
        let found = api.get(name).await.map_err(|error| error.to_string())?;
        condition_of(&found, "Established")
            .filter(|condition| condition["status"] == "True")
            .ok_or_else(|| found.data.to_string())
    })
    .await;
}

pub(crate) async fn make_namespace(client: &Client, name: &str) {
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": name } })).expect("a namespace");
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("made");
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

pub(crate) fn definitions() -> ApiResource {
    let group = "apiextensions.crossplane.io";
    resource(group, "v2", "CompositeResourceDefinition", "compositeresourcedefinitions")
}

pub(crate) fn composites() -> ApiResource {
    resource("example.org", "v1", "XServer", "xservers")
}

pub(crate) fn servers() -> ApiResource {
    resource("standin.slipway.dev", "v1alpha1", "Server", "servers")
}

pub(crate) fn external_secrets() -> ApiResource {
    resource("external-secrets.io", "v1", "ExternalSecret", "externalsecrets")
}

pub(crate) fn provider_configs() -> ApiResource {
    resource("hetzner.crossplane.io", "v1beta1", "ProviderConfig", "providerconfigs")
}

pub(crate) fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": { "name": format!("{plural}.example.org") },
        "spec": {
            "group": "example.org",
            "names": { "kind": kind, "plural": plural },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "referenceable": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                    "type": "object",
                    "properties": {
                        "parameters": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": true,
                        },
                        "userData": { "type": "string" },
                        "cloudTags": {
                            "type": "object",
                            "additionalProperties": { "type": "string" },
                        },
                    },
                } } } },
            }],
        },
    })
}

/// A composite with these parameters.
pub(crate) fn composite(name: &str, parameters: &Value) -> Value {
    json!({
        "apiVersion": "example.org/v1",
        "kind": "XServer",
        "metadata": { "name": name },
        "spec": { "parameters": parameters },
    })
}

/// Server-side apply under the test's own field manager.
pub(crate) async fn apply(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    object: &Value,
) -> kube::Result<DynamicObject> {
    let api = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::<DynamicObject>::all_with(client.clone(), resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await
}

impl World {
    pub(crate) fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, resource)
    }

    pub(crate) async fn apply(&self, object: &Value) -> DynamicObject {
        apply(&self.client, &composites(), Some(&self.namespace), object).await.expect("applied")
    }

    /// Waits for a condition of a composite and returns the composite.
    pub(crate) async fn until(&self, name: &str, kind: &str, status: &str) -> DynamicObject {
        let api = self.api(&composites());
        until(TIMEOUT, &format!("{name} with {kind}={status}"), async || {
            let found = api.get(name).await.map_err(|error| error.to_string())?;
            match condition_of(&found, kind) {
                Some(condition) if condition["status"] == status => Ok(found),
                _ => Err(found.data["status"].to_string()),
            }
        })
        .await
    }

    pub(crate) async fn until_gone(&self, resource: &ApiResource, name: &str) {
        let api = self.api(resource);
        until(TIMEOUT, &format!("the end of {name}"), async || match api.get_opt(name).await {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(format!("its finalizers are {:?}", found.finalizers())),
            Err(error) => Err(error.to_string()),
        })
        .await;
    }

    /// The journal of this namespace's agents, oldest first: composite and entry.
    pub(crate) fn performed(&self) -> Vec<(String, String)> {
        performed(&self.journal, &self.namespace)
    }
}

pub(crate) fn performed(journal: &Path, namespace: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(journal).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"))
        .filter(|line| line["namespace"] == namespace)
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            (text("composite"), text("entry"))
        })
        .collect()
}

pub(crate) fn condition_of(object: &DynamicObject, kind: &str) -> Option<Value> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind).cloned()
}
