//! The blueprint of these tests, in its published documents.

use serde_json::{Value, json};

pub(crate) const GROUP: &str = "tests.slipway.dev";

/// The definition of a kind of composites.
pub(crate) fn definition(kind: &str) -> Value {
    let plural = plural(kind);
    json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "names": { "kind": kind, "plural": plural },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "referenceable": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": {
                        "parameters": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": true,
                        },
                        "userData": { "type": "string" },
                        "cloudTags": {
                            "type": "object",
                            "additionalProperties": { "type": "string" },
                        },
                    } },
                } } },
            }],
        },
    })
}

pub(crate) fn composition(kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": { "name": format!("{}.{GROUP}", plural(kind)) },
        "spec": {
            "compositeTypeRef": { "apiVersion": format!("{GROUP}/v1"), "kind": kind },
            "mode": "Pipeline",
            "pipeline": [{ "step": "compose", "functionRef": { "name": "function-of-the-tests" } }],
        },
    })
}

pub(crate) fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}
