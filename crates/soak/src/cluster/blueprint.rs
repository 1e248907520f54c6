//! The blueprint of this scenario.

use serde_json::{Value, json};

pub(super) const SLUG: &str = "server";
pub(super) const PROVIDER: &str = "hetzner";
pub(super) const PROVIDER_GROUP: &str = "hetzner.crossplane.io";
pub(super) const GROUP: &str = "soak.slipway.dev";
pub(super) const KIND: &str = "XServer";
pub(super) const PLURAL: &str = "xservers";
/// A label that becomes a tag, so that a change of it changes the composite.
pub(super) const LABEL: &str = "team";

/// The body that publishes its version.
pub(super) fn version() -> Value {
    json!({
        "version": "v1",
        "xrd": definition().to_string(),
        "composition": composition().to_string(),
        "parameter_schema": { "parameters": [
            { "name": "standin", "type": "string", "required": false },
        ] },
        "injection_strategy": "cloud-init-user-data",
        "provider_kinds": [PROVIDER],
        "install_definitions": true,
    })
}

fn definition() -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": { "name": format!("{PLURAL}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "names": { "kind": KIND, "plural": PLURAL },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "referenceable": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": {
                        "parameters": any,
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

fn composition() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": { "name": format!("{PLURAL}.{GROUP}") },
        "spec": {
            "compositeTypeRef": { "apiVersion": format!("{GROUP}/v1"), "kind": KIND },
            "mode": "Pipeline",
            "pipeline": [{ "step": "compose", "functionRef": { "name": "function-of-the-soak" } }],
        },
    })
}
