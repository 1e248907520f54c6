//! An example of every body, made from its schema: what a text looks like is said
//! once for each name.

use serde_json::{Map, Value, json};

use super::texts::is_text;
use crate::error;
use slipway_core::error::ErrorKind;

const ID: &str = "0192f0c1-2b3c-7d4e-8f50-123456789abc";
const TIME: &str = "2026-01-31T12:00:00.000000Z";

/// An example of a document, by its name.
pub(super) fn document(name: &str, schemas: &Map<String, Value>) -> Value {
    of(name, name, &schemas[name], schemas)
}

/// An example of a refusal with this status.
pub(super) fn refusal(status: u16, path: &str) -> Value {
    let has = |kind: &&ErrorKind| {
        [false, true].iter().any(|in_path| error::status(**kind, *in_path).as_u16() == status)
    };
    let code = ErrorKind::ALL.iter().find(has).map_or("internal", |kind| kind.code());
    let message = "what happened, to what, and what to do about it";
    let mut problem = json!({
        "type": format!("/docs/problems/{code}"), "title": error::title(code), "status": status,
        "detail": message, "instance": path, "code": code, "message": message,
        "correlation_id": ID,
    });
    if matches!(status, 400 | 422) {
        problem["details"] = json!({ "field": "handle" });
        problem["errors"] = json!([{ "field": "handle", "code": code, "message": message }]);
    }
    problem
}

/// An example of a stream of this media type.
pub(super) fn stream(media: &str, schemas: &Map<String, Value>) -> Value {
    match media {
        "text/event-stream" => {
            let event = document("Event", schemas);
            json!(format!(
                "id: 42\nevent: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap_or_default()
            ))
        }
        _ => json!(format!("{}\n", document("AuditEntry", schemas))),
    }
}

/// `document` and `property` name what the schema is of.
fn of(document: &str, property: &str, schema: &Value, schemas: &Map<String, Value>) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return of(name, property, &schemas[name], schemas);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut whole = Map::new();
        for part in parts {
            if let Value::Object(part) = of(document, property, part, schemas) {
                whole.extend(part);
            }
        }
        return Value::Object(whole);
    }
    // The first that is not null.
    if let Some(several) = schema["oneOf"].as_array() {
        let some = several.iter().find(|one| one["type"] != "null");
        return some.map_or(Value::Null, |one| of(document, property, one, schemas));
    }
    if let Some(members) = schema["enum"].as_array() {
        return members.first().cloned().unwrap_or_default();
    }
    if is_text(schema) {
        return match schema["format"].as_str() {
            Some("uuid") => json!(ID),
            Some("date-time") => json!(TIME),
            _ => json!(text(document, property)),
        };
    }
    let is = |kind: &str| {
        schema["type"] == kind
            || schema["type"].as_array().is_some_and(|all| all.contains(&json!(kind)))
    };
    if is("array") {
        return json!([of(document, property, &schema["items"], schemas)]);
    }
    if is("integer") {
        return json!(schema["minimum"].as_i64().unwrap_or(0).max(1));
    }
    if is("boolean") {
        return json!(false);
    }
    match (property, schema["properties"].as_object()) {
        (_, Some(properties)) => {
            let each = properties
                .iter()
                .map(|(name, inner)| (name.clone(), of(document, name, inner, schemas)));
            Value::Object(each.collect())
        }
        ("effective_labels", _) => json!({ "team": { "value": "blue", "source": "project" } }),
        ("labels", _) => json!({ "team": "blue" }),
        ("parameters", _) => json!({ "busy_seconds": 5 }),
        ("endpoint", _) => json!({ "region": "eu-central" }),
        ("default", _) => json!(1),
        _ => json!({}),
    }
}

fn text(document: &str, property: &str) -> &'static str {
    match (document, property) {
        ("Parameter", "name") => "size",
        ("LoopStatus", "name") => "resources",
        ("Leak" | "LeakSuspicion", "name") => "web-1-x7k2p",
        ("Subscription", "name") => "event-log",
        ("CreateKey" | "ApiKey", "name") => "ci",
        ("CreateCredential" | "Credential", "name") => "deploy",
        ("ApiKeyWithText", "key") => "slipway_Ab3dEf6h_Xy12Zw34Vu56Ts78Rq90Po12",
        ("DefineLabel" | "LabelDefinition", "key") => "team",
        ("Event", "type") => "provisioning.ProvisionedResourceReady",
        (_, "name" | "project") => "shop",
        (_, "handle" | "confirm" | "hostname") => "web-1",
        (_, "blueprint") => "local-node",
        (_, "slug") => "server",
        (_, "display_name" | "displayName") => "Server",
        (_, "description") => "A server with a node agent",
        (_, "version" | "blueprint_version" | "found_version" | "wanted_version") => "v1",
        (_, "credential") => "deploy",
        (_, "cloud") => "eu",
        (_, "cluster") => "east",
        (_, "region") => "eu-central",
        (_, "access") => "kubeconfig/east",
        (_, "provider" | "provider_config" | "provider_kinds" | "providerKinds") => "hetzner",
        (_, "kv_mount") => "secret",
        (_, "kv_path") => "clouds/eu/deploy",
        (_, "mesh_cidr") => "10.42.0.0/16",
        (_, "mesh_ip") => "10.42.0.7",
        (_, "namespace") => "slipway-project-0192f0c1",
        (_, "namespace_prefix") => "slipway-project-",
        (_, "reason" | "removal_reason" | "deregistered_reason") => "replaced",
        (_, "actor" | "by" | "created_by" | "requested_by" | "issued_by" | "resolved_by") => {
            "key:admin"
        }
        (_, "verb") => "resource.declare",
        (_, "public_url") => "https://slipway.example",
        (_, "xrd") => {
            "apiVersion: apiextensions.crossplane.io/v2\nkind: CompositeResourceDefinition\n"
        }
        (_, "composition") => "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\n",
        (_, "composition_name") => "servers-v1-3f2a90c1d7e4",
        (_, "apiVersion") => "example.org/v1",
        (_, "plural") => "servers",
        (_, "to" | "from") => "Ready",
        (_, "token") => "psb_live_…",
        (_, "correlation_id") => ID,
        _ => "a text",
    }
}
