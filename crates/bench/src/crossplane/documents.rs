//! The blueprint of this benchmark.

use serde_json::{Value, json};
use slipway_core::catalog::blueprint_version::{CompositeScope, CompositeType};

pub(super) const GROUP: &str = "bench.slipway.dev";
const KIND: &str = "XServer";
const PLURAL: &str = "xservers";

pub(super) fn composite_type() -> CompositeType {
    CompositeType {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        kind: KIND.to_owned(),
        plural: PLURAL.to_owned(),
        scope: CompositeScope::Namespaced,
    }
}

pub(super) fn definition() -> Value {
    let text = json!({ "type": "string" });
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let spec = json!({ "type": "object", "properties": { "parameters": open, "userData": text } });
    json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": { "name": format!("{PLURAL}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "names": { "kind": KIND, "plural": PLURAL },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": {
                    "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } },
                },
            }],
        },
    })
}

pub(super) fn composition() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": { "name": format!("{PLURAL}.{GROUP}") },
        "spec": {
            "compositeTypeRef": { "apiVersion": format!("{GROUP}/v1"), "kind": KIND },
            "mode": "Pipeline",
            "pipeline": [{ "step": "compose", "functionRef": { "name": "none" } }],
        },
    })
}

/// A composite as the raw side applies it.
pub(super) fn plain(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": KIND,
        "metadata": { "name": name, "labels": { "slipway.dev/bench": "raw" } },
        "spec": { "parameters": { "size": 2 } },
    })
}
