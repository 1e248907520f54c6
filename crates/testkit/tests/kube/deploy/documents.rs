//! Reads the shipped documents, and applies them to an API server.

use std::path::Path;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde::Deserialize as _;
use serde_json::Value;

/// A file of the repository, by its path from the root.
pub(super) fn text(path: &str) -> String {
    // Tests run in the folder of their package.
    let path = Path::new("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of a YAML file.
pub(super) fn documents(path: &str) -> Vec<Value> {
    serde_yaml_ng::Deserializer::from_str(&text(path))
        .map(|document| Value::deserialize(document).unwrap_or_else(|e| panic!("{path}: {e}")))
        .filter(|document| !document.is_null())
        .collect()
}

pub(super) fn word(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// The name of a document, for messages.
pub(super) fn title(document: &Value) -> String {
    format!("{} {}", document["kind"], document["metadata"]["name"])
}

pub(super) fn api(client: &Client, document: &Value) -> Api<DynamicObject> {
    let version = word(&document["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = word(&document["kind"]);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match document["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Server-side apply, which also refuses unknown fields.
pub(super) async fn apply(
    client: &Client,
    document: &Value,
    parameters: &PatchParams,
) -> kube::Result<DynamicObject> {
    let name = word(&document["metadata"]["name"]);
    api(client, document).patch(name, parameters, &Patch::Apply(document)).await
}
