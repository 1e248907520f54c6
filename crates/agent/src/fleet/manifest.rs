//! The Kubernetes objects in the content of a deployment object: several YAML
//! documents, lists resolved, in the order of the text.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::Value;
use slipway_core::fleet::content::Content;

use super::inventory::Reference;

/// The most objects of one stack. Its references fit into one ConfigMap, also while an
/// upgrade keeps those of before.
pub(crate) const MOST_OBJECTS: usize = 3_000;

/// Fields that a server fills. An object that was exported with them is applied without.
const OF_THE_SERVER: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
];

/// One object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) reference: Reference,
    pub(crate) body: Value,
}

/// Reads content. An error says what is wrong with which document, and quotes nothing
/// but names.
pub(crate) fn read(content: &str) -> Result<Vec<Manifest>, String> {
    // Bounds what the text stands for, before a tree is built of it.
    Content::parse(content).map_err(|refusal| refusal.message)?;
    let mut manifests = Vec::new();
    for (index, document) in serde_yaml_ng::Deserializer::from_str(content).enumerate() {
        let at = |problem: String| format!("document {}: {problem}", index + 1);
        let mut document = serde_yaml_ng::Value::deserialize(document)
            .map_err(|error| at(format!("is no valid YAML: {error}")))?;
        if document.is_null() {
            continue;
        }
        document.apply_merge().map_err(|error| at(error.to_string()))?;
        let body = serde_json::to_value(&document)
            .map_err(|error| at(format!("cannot be written as JSON: {error}")))?;
        resolve(body, &mut manifests).map_err(at)?;
    }
    let mut known = BTreeSet::new();
    if let Some(twice) = manifests.iter().find(|one| !known.insert(one.reference.key())) {
        return Err(format!("{} is there twice; leave one of them out", twice.reference));
    }
    if manifests.len() > MOST_OBJECTS {
        return Err(format!(
            "it has {} objects, and a stack has at most {MOST_OBJECTS}; split it",
            manifests.len()
        ));
    }
    Ok(manifests)
}

/// Adds an object, or the items of a list.
fn resolve(body: Value, manifests: &mut Vec<Manifest>) -> Result<(), String> {
    let is_list = body["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    if is_list && let Some(items) = body["items"].as_array() {
        return items.iter().try_for_each(|item| resolve(item.clone(), manifests));
    }
    manifests.push(Manifest { reference: reference(&body)?, body: without_server_fields(body) });
    Ok(())
}

/// The address of an object, by its body.
pub(super) fn reference(body: &Value) -> Result<Reference, String> {
    let text = |value: &Value, field: &str| match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("`{field}` is missing")),
    };
    let metadata = &body["metadata"];
    let namespace = match &metadata["namespace"] {
        Value::Null => None,
        Value::String(namespace) if namespace.is_empty() => None,
        Value::String(namespace) => Some(namespace.clone()),
        _ => return Err("`metadata.namespace` is no text".to_owned()),
    };
    if metadata["name"].is_null() && metadata["generateName"].is_string() {
        return Err("`metadata.generateName` is not taken, since each apply would make another object; name it".to_owned());
    }
    Ok(Reference {
        api_version: text(&body["apiVersion"], "apiVersion")?,
        kind: text(&body["kind"], "kind")?,
        plural: String::new(),
        namespace,
        name: text(&metadata["name"], "metadata.name")?,
        digest: None,
        is_stale: false,
    })
}

fn without_server_fields(mut body: Value) -> Value {
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.retain(|field, _| !OF_THE_SERVER.contains(&field.as_str()));
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(content: &str) -> Vec<String> {
        read(content).unwrap().iter().map(|one| one.reference.to_string()).collect()
    }

    #[test]
    fn documents_and_lists_become_objects_in_order() {
        let content = "\
apiVersion: v1
kind: Namespace
metadata: {name: n}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n}}
- apiVersion: v1
  kind: ConfigMapList
  items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: n}}]
";
        assert_eq!(shown(content), ["Namespace n", "ConfigMap n/a", "ConfigMap n/b"]);
    }

    #[test]
    fn merge_keys_are_resolved_and_fields_of_a_server_left_out() {
        let content = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: a, uid: u, resourceVersion: '7', managedFields: []}
data:
  <<: {b: x}
  c: y
";
        let [one] = &read(content).unwrap()[..] else { panic!() };
        assert_eq!(one.body["data"], serde_json::json!({"b": "x", "c": "y"}));
        assert_eq!(one.body["metadata"], serde_json::json!({"name": "a"}));
    }

    #[test]
    fn a_fault_names_the_document_and_the_field() {
        let whole = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        for (content, named) in [
            ("kind: A\nmetadata: {name: a}", "document 1: `apiVersion`"),
            ("apiVersion: v1\nmetadata: {name: a}", "`kind`"),
            ("apiVersion: v1\nkind: A\nmetadata: {name: ''}", "`metadata.name`"),
            ("apiVersion: v1\nkind: A\nmetadata: {generateName: a-}", "generateName"),
            ("apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: [b]}", "namespace"),
            (&format!("{whole}---\n{whole}"), "ConfigMap a is there twice"),
            (&format!("{whole}---\nkind: [\n"), "line"),
            ("", "document"),
        ] {
            let fault = read(content).unwrap_err();
            assert!(fault.contains(named), "{content}: {fault}");
        }
    }
}
