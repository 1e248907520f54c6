//! The shipped account, installed on a cluster as `deploy/rbac` says.

use std::path::Path;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde::Deserialize as _;
use serde_json::{Value, json};
use slipway_testkit::kube::KubeEnvironment;
use slipway_testkit::wait;

use crate::blueprint::GROUP;
use crate::control_plane::TIMEOUT;
use crate::stage::PROVIDER;

const NAMESPACE: &str = "slipway-system";

/// The API group of what the stand-in composes.
pub(crate) const COMPOSED: &str = "standin.slipway.dev";

/// The user name of the account in the API server.
pub(crate) const USER: &str = "system:serviceaccount:slipway-system:slipway";

/// A copy of `groups.example.yaml` with the entries that these tests need: the
/// group of the composites and that of the provider.
fn groups() -> String {
    let mut groups = shipped("deploy/rbac/groups.example.yaml");
    for (theirs, ours) in [
        ("platform.example.org", GROUP.to_owned()),
        ("hcloud.crossplane.io", format!("{PROVIDER}.crossplane.io")),
    ] {
        assert!(groups.contains(theirs), "{theirs} stands in the example");
        groups = groups.replace(theirs, &ours);
    }
    groups
}

/// A file of the repository, by its path from the root.
fn shipped(path: &str) -> String {
    // Tests run in the folder of their package.
    std::fs::read_to_string(Path::new("../..").join(path)).unwrap()
}

/// Installs it, waits until its rights are in effect, and returns its kubeconfig.
pub(crate) async fn install(kubernetes: &KubeEnvironment, admin: &Client) -> String {
    bring(admin, &shipped("deploy/rbac/control-plane.yaml")).await;
    bring(admin, &groups()).await;
    // One right of each role that is aggregated into its own.
    let provider = format!("{PROVIDER}.crossplane.io");
    for (group, resource, verb) in [
        ("", "resourcequotas", "patch"),
        ("protection.crossplane.io", "clusterusages", "list"),
        (GROUP, "xservers", "delete"),
        (&*provider, "providerconfigs", "patch"),
    ] {
        until_allowed(admin, group, resource, verb).await;
    }
    let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), NAMESPACE);
    let request: TokenRequest = serde_json::from_value(
        json!({ "spec": { "audiences": [kubernetes.url()], "expirationSeconds": 3600 } }),
    )
    .unwrap();
    let given = accounts.create_token_request("slipway", &PostParams::default(), &request).await;
    kubernetes.kubeconfig_with_token("slipway", &given.unwrap().status.unwrap().token)
}

/// Also lets it list what the stand-in composes, as the documents advise for such a group.
pub(crate) async fn inspect(admin: &Client) {
    let known = "      - protection.crossplane.io\n";
    let groups = groups();
    assert!(groups.contains(known), "{groups}");
    bring(admin, &groups.replace(known, &format!("{known}      - {COMPOSED}\n"))).await;
    until_allowed(admin, COMPOSED, "servers", "list").await;
}

/// A controller fills the aggregated role a moment later.
async fn until_allowed(admin: &Client, group: &str, resource: &str, verb: &str) {
    let review: SubjectAccessReview = serde_json::from_value(json!({ "spec": {
        "user": USER,
        "resourceAttributes": { "group": group, "resource": resource, "verb": verb },
    } }))
    .unwrap();
    let reviews = Api::<SubjectAccessReview>::all(admin.clone());
    wait::until(TIMEOUT, &format!("{verb} {resource}.{group}"), async || {
        let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
        answer.status.unwrap().allowed
    })
    .await;
}

async fn bring(admin: &Client, documents: &str) {
    for document in serde_yaml_ng::Deserializer::from_str(documents) {
        let document = Value::deserialize(document).unwrap();
        if !document.is_null() {
            apply(admin, &document).await;
        }
    }
}

async fn apply(client: &Client, document: &Value) {
    let part = |value: &Value| value.as_str().unwrap().to_owned();
    let (version, name) = (part(&document["apiVersion"]), part(&document["metadata"]["name"]));
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let kind = part(&document["kind"]);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api = match document["metadata"]["namespace"].as_str() {
        Some(namespace) => {
            Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource)
        }
        None => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply("installer").force();
    let applied = api.patch(&name, &parameters, &Patch::Apply(document)).await;
    assert!(applied.is_ok(), "{kind} {name}: {applied:?}");
}
