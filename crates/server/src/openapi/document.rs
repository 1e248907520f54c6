//! The OpenAPI document. Written as JSON instead of with a builder: the
//! description is regular, so a few functions produce all of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use slipway_app::access::authorise::Terms;
use slipway_core::operations::explanation::ExplainedKind;
use slipway_wire::problem::{MEDIA_TYPE, Problem};

use super::query::query;
use crate::router::TABLE;
use crate::routes::{Answer, Document, Route, Schemas};

const ABOUT: &str = "Declare infrastructure and it is brought to Ready; delete it and it is \
    drained, taken down in order, and only then released.\n\nLists are arrays in pages: follow \
    `Link: rel=\"next\"`. Every refusal is `application/problem+json` with a stable `code`. \
    Creates take `Idempotency-Key`, changes take `If-Match` with the `ETag` that was read. \
    What converges later is answered with 202 and `Location`. Nodes speak another protocol, \
    under `/v1`.";

/// The OpenAPI document of the whole API.
pub fn document() -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in TABLE.iter() {
        let path = format!("/api/v1{}", route.path);
        let method = route.method.to_lowercase();
        paths.entry(path).or_default().insert(method, describe(route));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Slipway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, as `slipway up` shows one at its first start.",
                },
            },
            "schemas": schemas(),
        },
    })
}

/// The schema of every document that a row names, with all it refers to.
fn schemas() -> BTreeMap<String, Value> {
    let mut found = Schemas::new();
    (Document::of::<Problem>().collect)(&mut found);
    for route in TABLE.iter() {
        let answer = match &route.answer {
            Answer::One(document) | Answer::Array(document) => Some(document),
            Answer::Nothing | Answer::Text(_) => None,
        };
        for document in [route.body.as_ref(), answer].into_iter().flatten() {
            (document.collect)(&mut found);
        }
    }
    // Schemas are plain data, so serialising them cannot fail.
    let mut schemas: BTreeMap<_, _> =
        found.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    schemas.values_mut().for_each(bound_labels);
    schemas
}

/// Limits labels in requests: the derive cannot describe the keys of a map.
fn bound_labels(schema: &mut Value) {
    let is_request = schema["additionalProperties"] == false;
    if let Some(labels) = schema.pointer_mut("/properties/labels").filter(|_| is_request) {
        labels["propertyNames"] = json!({ "pattern": "^[A-Za-z0-9._/-]{1,63}$" });
        labels["additionalProperties"] = json!({ "type": "string", "maxLength": 256 });
        labels["maxProperties"] = json!(64);
    }
}

fn reference(document: &Document) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", document.name) })
}

fn describe(route: &Route) -> Value {
    let Terms { least, reach, audit } = route.terms();
    let audited = audit.map_or(String::new(), |verb| format!(" Audited as `{verb}`."));
    let description = format!("Least role: {least}. Reach: {reach}.{audited}");
    let mut described = json!({
        "operationId": identity(route),
        "tags": [route.tag()],
        "summary": route.summary,
        "description": description,
        "parameters": parameters(route),
        "responses": responses(route),
    });
    if let Some(body) = &route.body {
        described["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": reference(body) } },
        });
    }
    described
}

/// `POST /keys/{id}/rotate` → `post_keys_id_rotate`.
fn identity(route: &Route) -> String {
    let mut identity = route.method.to_lowercase();
    for segment in route.path.split('/').filter(|segment| !segment.is_empty()) {
        identity.push('_');
        identity.push_str(&segment.trim_matches(['{', '}']).replace('-', "_"));
    }
    identity
}

fn parameters(route: &Route) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let mut parameters = Vec::new();
    for name in route.path_parameters() {
        let schema = match name {
            "id" | "credential" => json!({ "type": "string", "format": "uuid" }),
            "kind" => json!({ "type": "string", "enum": ExplainedKind::ALL }),
            _ => text.clone(),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    for name in &route.query {
        let (about, schema) = query(name);
        parameters.push(json!({
            "name": name, "in": "query", "description": about, "schema": schema,
        }));
    }
    let mut header = |name: &str, about: &str, pattern: &str| {
        let schema = json!({ "type": "string", "pattern": pattern });
        parameters.push(json!({
            "name": name, "in": "header", "description": about, "schema": schema,
        }));
    };
    if route.takes_if_match {
        let about = "The ETag that was read, or `*`; without it any revision is changed.";
        header("If-Match", about, r#"^(\*|"[0-9]{1,18}")$"#);
    }
    if route.takes_idempotency_key {
        let about = "The same request with the same key creates once.";
        header("Idempotency-Key", about, "^[!-~]{1,255}$");
    }
    parameters
}

fn responses(route: &Route) -> Map<String, Value> {
    let mut responses = Map::new();
    let content = match &route.answer {
        Answer::Nothing => None,
        Answer::One(document) => {
            Some(json!({ "application/json": { "schema": reference(document) } }))
        }
        Answer::Array(document) => Some(json!({
            "application/json": { "schema": { "type": "array", "items": reference(document) } },
        })),
        Answer::Text(media) => Some(json!({ *media: { "schema": { "type": "string" } } })),
    };
    for status in &route.statuses {
        let mut response = json!({ "description": meaning(*status) });
        if let Some(content) = content.as_ref().filter(|_| *status != 204) {
            response["content"] = content.clone();
        }
        responses.insert(status.to_string(), response);
    }
    for status in &route.refusals {
        let response = json!({
            "description": meaning(*status),
            "content": { MEDIA_TYPE: { "schema": reference(&Document::of::<Problem>()) } },
        });
        responses.insert(status.to_string(), response);
    }
    responses
}

const fn meaning(status: u16) -> &'static str {
    match status {
        200 => "Done.",
        201 => "Created; `Location` is its address.",
        202 => "Accepted; follow `Location` for its progress.",
        204 => "Done; the answer has no body.",
        400 => "The request is not understood; `details.field` names what is wrong.",
        401 => "No key, or one that is malformed, unknown, expired or revoked.",
        403 => "The role of the key is not sufficient.",
        404 => "Does not exist, or is outside the reach of the key.",
        408 => "The body took too long to arrive.",
        409 => "In conflict with the current state.",
        410 => "The cursor is older than the oldest event; list the current state and start again.",
        412 => "It changed since it was read; read it again.",
        413 => "The body is too long.",
        422 => "Refers to something that does not exist or does not fit.",
        429 => "Too many requests of this key; `Retry-After` says when to try again.",
        503 => "Not now; `Retry-After` says when to try again.",
        _ => "See the code.",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use slipway_app::access::authorise::Operation;

    use super::*;

    /// The rows are the only description of the API. A row missing from the
    /// table would leave its operation without a route.
    #[test]
    fn every_route_is_described_once_and_nothing_else_is() {
        let rows: Vec<_> = TABLE.iter().map(|row| (row.method, row.path)).collect();
        let unique: BTreeSet<_> = rows.iter().copied().collect();
        assert_eq!(unique.len(), rows.len(), "described twice");
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let described = paths.values().map(|methods| methods.as_object().unwrap().len());
        assert_eq!(described.sum::<usize>(), rows.len());
        for operation in Operation::ALL {
            assert!(TABLE.iter().any(|row| row.operation == *operation), "{operation:?}");
        }
    }

    #[test]
    fn nothing_is_referred_to_that_is_not_there_and_every_status_has_a_meaning() {
        let document = document();
        let text = document.to_string();
        let known = document["components"]["schemas"].as_object().unwrap();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(known.contains_key(name), "{name}");
        }
        assert!(!text.contains("See the code."), "a status without a meaning");
        for route in TABLE.iter() {
            assert!(!route.summary.is_empty());
            assert!(route.query.iter().all(|name| !query(name).0.is_empty()), "{route:?}");
        }
    }

    /// `cargo xtask generate` writes the file.
    #[test]
    fn the_committed_document_is_the_one_of_the_code() {
        let committed = include_str!("../../../../docs/openapi.json");
        let now = format!("{:#}\n", document());
        assert!(committed == now, "docs/openapi.json is outdated: run `cargo xtask generate`");
    }
}
