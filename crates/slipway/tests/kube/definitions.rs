//! Blueprints that install their own kind on the clusters of projects.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use reqwest::Method;
use serde::Deserialize as _;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::blueprint::{self, GROUP};
use crate::control_plane::TIMEOUT;
use crate::stage::Environment;
use crate::world::{BLUEPRINT, PROJECT, PROVIDER, Setup, World, resource};

const KIND: &str = "XServer";
const ACCOUNT: &str = "system:serviceaccount:slipway-system:slipway";

impl World {
    async fn installed(&self, slug: &str) -> Value {
        self.plane.get(&format!("/api/v1/blueprints/{slug}/definitions")).await[0].clone()
    }

    pub(crate) async fn wait_for_definitions(
        &self,
        slug: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        wait::until(TIMEOUT, what, async || {
            let found = self.installed(slug).await;
            if wanted(&found) {
                return Ok(found);
            }
            Err(format!("{found}\n{}", self.plane.log_tail()))
        })
        .await
    }

    pub(crate) async fn publish(
        &self,
        slug: &str,
        version: &str,
        definition: &Value,
        composition: &Value,
    ) {
        let body = json!({
            "version": version,
            "xrd": definition.to_string(),
            "composition": composition.to_string(),
            "parameter_schema": { "parameters": [{ "name": "size", "type": "integer" }] },
            "injection_strategy": "cloud-init-user-data",
            "provider_kinds": [PROVIDER],
            "install_definitions": true,
        });
        self.make(&format!("/api/v1/blueprints/{slug}/versions"), body).await;
    }

    fn definitions(&self) -> Api<DynamicObject> {
        let kind = resource(
            "apiextensions.crossplane.io/v2",
            "CompositeResourceDefinition",
            "compositeresourcedefinitions",
        );
        Api::all_with(self.client.clone(), &kind)
    }

    async fn apply(&self, document: &Value) {
        let (group, version) = document["apiVersion"]
            .as_str()
            .unwrap()
            .split_once('/')
            .unwrap_or(("", document["apiVersion"].as_str().unwrap()));
        let kind = GroupVersionKind::gvk(group, version, document["kind"].as_str().unwrap());
        let resource = ApiResource::from_gvk(&kind);
        let api = match document["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::<DynamicObject>::all_with(self.client.clone(), &resource),
        };
        let name = document["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply("a-person").force();
        api.patch(name, &parameters, &Patch::Apply(document)).await.unwrap();
    }
}

fn documents(text: &str) -> Vec<Value> {
    let read = serde_yaml_ng::Deserializer::from_str(text);
    read.map(|document| Value::deserialize(document).unwrap())
        .filter(|document| !document.is_null())
        .collect()
}

/// The second version, which also serves the first.
pub(crate) fn second() -> (Value, Value) {
    let mut definition = blueprint::definition(KIND);
    let mut newer = definition["spec"]["versions"][0].clone();
    newer["name"] = json!("v2");
    definition["spec"]["versions"][0]["referenceable"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().insert(0, newer);
    let mut composition = blueprint::composition(KIND);
    composition["spec"]["compositeTypeRef"]["apiVersion"] = json!(format!("{GROUP}/v2"));
    composition["spec"]["pipeline"][0]["step"] = json!("compose-in-another-way");
    (definition, composition)
}

/// From a cluster without the kind to a Ready resource; a second version beside
/// the first, with the skew shown; and installed definitions stay.
#[tokio::test(flavor = "multi_thread")]
async fn an_installed_kind_is_established_upgraded_and_never_deleted() {
    let test = "an_installed_kind_is_established_upgraded_and_never_deleted";
    // Its placement is cleared one lease after its last resource is Deleted.
    let setup =
        Setup { install_definitions: true, settings: &["--lease", "3s"], ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let id = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&id, "Ready").await;
    let whole = |version: &'static str| {
        move |found: &Value| {
            found["phase"] == "Established"
                && found["found_version"] == version
                && found["wanted_version"] == version
        }
    };
    let first = world.wait_for_definitions(BLUEPRINT, "v1 to be Established", whole("v1")).await;
    assert_eq!((&first["cluster"], &first["problem"]), (&json!("east"), &Value::Null));
    let name = format!("{}.{GROUP}", blueprint::plural(KIND));
    let definition = world.definitions().get(&name).await.unwrap();
    assert_eq!(definition.labels()["slipway.dev/blueprint-version"], "v1");

    // A freeze withholds the installation, and both versions are shown.
    world.plane.says(&["freeze", "--for", "10m", "--reason", "test", "--wait"]);
    let (xrd, composition) = second();
    world.publish(BLUEPRINT, "v2", &xrd, &composition).await;
    let skewed = world
        .wait_for_definitions(BLUEPRINT, "the freeze to be told", |found| {
            found["problem"].as_str().is_some_and(|problem| problem.contains("frozen"))
        })
        .await;
    assert_eq!((&skewed["wanted_version"], &skewed["found_version"]), (&json!("v2"), &json!("v1")));
    let untouched = world.definitions().get(&name).await.unwrap();
    assert_eq!(untouched.metadata.generation, definition.metadata.generation);
    world.plane.says(&["unfreeze", "--reason", "test"]);
    let second = world.wait_for_definitions(BLUEPRINT, "v2 to be Established", whole("v2")).await;
    assert_eq!(second["problem"], Value::Null, "{second}");
    let shown = world.plane.says(&["blueprint", "definitions", BLUEPRINT]);
    assert!(shown.contains("east") && shown.contains("Established"), "{shown}");
    let newer = world.declare("web-2", "").await;
    let newer_up = world.plane.wait_for_phase(&newer, "Ready").await;
    assert_eq!(newer_up["blueprint_version"], "v2", "{newer_up}");
    // Nothing is applied again while nothing changes.
    let settled = world.definitions().get(&name).await.unwrap().resource_version();

    for version in ["v1", "v2"] {
        world.plane.says(&["blueprint", "retire", BLUEPRINT, version, "--yes"]);
    }
    for id in [&id, &newer] {
        world.plane.assert_goes(id).await;
    }
    let path = format!("/api/v1/projects/{PROJECT}/cluster");
    wait::until(TIMEOUT, "the project to be let go", async || {
        let (status, answer) = world.plane.call(Method::DELETE, &path, None).await;
        if [202, 204].contains(&status) { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    world
        .wait_for_namespace("the place to be cleared", |assignment| {
            assignment["namespace_phase"] == "Deleted"
        })
        .await;
    let left = world.installed(BLUEPRINT).await;
    assert_eq!((&left["wanted_version"], &left["found_version"]), (&Value::Null, &json!("v2")));
    let kept = world.definitions().get(&name).await.unwrap();
    assert_eq!((kept.resource_version(), kept.uid()), (settled, definition.uid()));
}

/// An XRD of the same name that belongs to somebody else, until it is handed over.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_of_somebody_else_is_left_alone() {
    let test = "a_definition_of_somebody_else_is_left_alone";
    let Some(world) = World::start(test, Setup::default()).await else { return };
    let name = format!("{}.{GROUP}", blueprint::plural(KIND));
    let before = world.definitions().get(&name).await.unwrap();
    let (xrd, composition) = second();
    world.publish(BLUEPRINT, "v2", &xrd, &composition).await;
    let held = world
        .wait_for_definitions(BLUEPRINT, "it to be Degraded", |found| found["phase"] == "Degraded")
        .await;
    assert_eq!((&held["wanted_version"], &held["found_version"]), (&json!("v2"), &Value::Null));
    let problem = held["problem"].as_str().unwrap();
    assert!(problem.contains("belongs to somebody else; it is left alone"), "{problem}");
    let after = world.definitions().get(&name).await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());

    let (_, remedy) = problem.split_once("slipway.dev/installation=").unwrap();
    let installation = remedy.split('`').next().unwrap();
    let label = json!({ "metadata": { "labels": { "slipway.dev/installation": installation } } });
    let parameters = PatchParams::default();
    world.definitions().patch(&name, &parameters, &Patch::Merge(&label)).await.unwrap();
    world
        .wait_for_definitions(BLUEPRINT, "it to be taken over", |found| {
            found["phase"] == "Established" && found["found_version"] == "v2"
        })
        .await;
    let taken = world.definitions().get(&name).await.unwrap();
    assert_eq!(taken.uid(), before.uid(), "the same object, with all its composites");
}

/// The shipped account installs the kind and may not use it, until somebody
/// grants that by the command that it names.
#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_are_named_with_the_command_that_grants_them() {
    let test = "rights_that_are_missing_are_named_with_the_command_that_grants_them";
    let setup = Setup { environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    for file in ["deploy/rbac/control-plane.yaml", "deploy/rbac/definitions.yaml"] {
        let text = std::fs::read_to_string(std::path::Path::new("../..").join(file)).unwrap();
        for document in documents(&text) {
            world.apply(&document).await;
        }
    }
    let provider = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": "provider", "labels": { "slipway.dev/aggregate-to-control-plane": "true" },
        },
        "rules": [{
            "apiGroups": [format!("{PROVIDER}.crossplane.io")], "resources": ["providerconfigs"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        }],
    });
    world.apply(&provider).await;
    let accounts = Api::<ServiceAccount>::namespaced(world.client.clone(), "slipway-system");
    let request: TokenRequest = serde_json::from_value(
        json!({ "spec": { "audiences": [world.kubernetes.url()], "expirationSeconds": 3600 } }),
    )
    .unwrap();
    let parameters = PostParams::default();
    let answer = accounts.create_token_request("slipway", &parameters, &request).await.unwrap();
    let token = answer.status.unwrap().token;
    let config = world.kubernetes.kubeconfig_with_token("slipway", &token);
    std::fs::write(world.kubeconfig_file(), config).unwrap();
    wait::until(TIMEOUT, "the account to be used", async || {
        let records = world.kubernetes.audit().unwrap();
        let used = records.iter().any(|record| record.user == ACCOUNT);
        if used { Ok(()) } else { Err(world.plane.log_tail()) }
    })
    .await;

    let permits = json!({ "slug": "gate", "display_name": "Permits", "engine": "crossplane" });
    world.make("/api/v1/blueprints", permits).await;
    let (xrd, composition) = (blueprint::definition("XGate"), blueprint::composition("XGate"));
    world.publish("gate", "v1", &xrd, &composition).await;
    let command = "slipway blueprint rbac gate | kubectl apply -f -";
    let lacking = world
        .wait_for_definitions("gate", "the command to be named", |found| {
            let named = found["problem"].as_str().is_some_and(|problem| problem.contains(command));
            found["phase"] == "Established" && named
        })
        .await;
    assert_eq!(lacking["found_version"], "v1", "{lacking}");

    let printed = world.plane.says(&["blueprint", "rbac", "gate"]);
    let [role] = &documents(&printed)[..] else { panic!("one role: {printed}") };
    world.apply(role).await;
    world
        .wait_for_definitions("gate", "the rights to be seen", |found| found["problem"].is_null())
        .await;
    let body = json!({ "project": PROJECT, "handle": "gate-1", "blueprint": "gate" });
    let declared = world.make("/api/v1/resources", body).await;
    let id = declared["id"].as_str().unwrap();
    world.plane.wait_for_phase(id, "Ready").await;
    world.plane.assert_goes(id).await;
}
