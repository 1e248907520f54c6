//! The OpenAPI document. Written as JSON and not by a builder: what it says is
//! regular, so a few functions say all of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use slipway_core::explanation::ExplainedKind;
use slipway_wire::problem::{MEDIA_TYPE, Problem};

use super::operation::{Answer, Document, Operation};
use super::operations::operations;

const ABOUT: &str = "Declare infrastructure and it is brought to Ready; delete it and it is \
    drained, taken down in order, and only then released.\n\nLists are arrays in pages: follow \
    `Link: rel=\"next\"`. Every refusal is `application/problem+json` with a stable `code`. \
    Creates take `Idempotency-Key`, changes take `If-Match` with the `ETag` that was read. \
    What converges later is answered with 202 and `Location`. Nodes speak another protocol, \
    under `/v1`.";

/// What the API is, for machines.
pub fn document() -> Value {
    let operations = operations();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for operation in &operations {
        let path = format!("/api/v1{}", operation.path);
        let method = operation.method.to_lowercase();
        paths.entry(path).or_default().insert(method, describe(operation));
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
            "schemas": schemas(&operations),
        },
    })
}

/// Every document that an operation names, with all that those hold.
fn schemas(operations: &[Operation]) -> BTreeMap<String, Value> {
    let mut found = Vec::new();
    (Document::of::<Problem>().collect)(&mut found);
    for operation in operations {
        let answer = match &operation.answer {
            Answer::One(document) | Answer::Many(document) => Some(document),
            Answer::Nothing | Answer::Text(_) => None,
        };
        for document in [operation.body.as_ref(), answer].into_iter().flatten() {
            (document.collect)(&mut found);
        }
    }
    // Schemas are plain data, so none of them can fail.
    let mut schemas: BTreeMap<_, _> =
        found.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    schemas.values_mut().for_each(bound_labels);
    schemas
}

/// Of a request: the derive has no word for the names of a map.
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

fn describe(operation: &Operation) -> Value {
    let mut description = String::new();
    if let Some((role, reach, audit)) = operation.access() {
        description = format!("Least role: {role}. Reach: {reach}.");
        if let Some(verb) = audit {
            description.push_str(&format!(" Audited as `{verb}`."));
        }
    }
    let mut described = json!({
        "operationId": identity(operation),
        "tags": [operation.tag()],
        "summary": operation.summary,
        "description": description,
        "parameters": parameters(operation),
        "responses": responses(operation),
    });
    if let Some(body) = &operation.body {
        described["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": reference(body) } },
        });
    }
    described
}

/// `POST /keys/{id}/rotate` → `post_keys_id_rotate`.
fn identity(operation: &Operation) -> String {
    let mut identity = operation.method.to_lowercase();
    for segment in operation.path.split('/').filter(|segment| !segment.is_empty()) {
        identity.push('_');
        identity.push_str(&segment.trim_matches(['{', '}']).replace('-', "_"));
    }
    identity
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let mut parameters = Vec::new();
    for name in operation.path_parameters() {
        let schema = match name {
            "id" | "credential" => json!({ "type": "string", "format": "uuid" }),
            "kind" => json!({ "type": "string", "enum": ExplainedKind::ALL }),
            _ => text.clone(),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    for query in &operation.query {
        parameters.push(json!({
            "name": query.name, "in": "query", "description": query.about, "schema": query.schema,
        }));
    }
    let mut header = |name: &str, about: &str, pattern: &str| {
        let schema = json!({ "type": "string", "pattern": pattern });
        parameters.push(json!({
            "name": name, "in": "header", "description": about, "schema": schema,
        }));
    };
    if operation.takes_if_match {
        let about = "The ETag that was read, or `*`; whatever is there without.";
        header("If-Match", about, r#"^(\*|"[0-9]{1,18}")$"#);
    }
    if operation.takes_idempotency_key {
        let about = "The same request under the same key is one create.";
        header("Idempotency-Key", about, "^[!-~]{1,255}$");
    }
    parameters
}

fn responses(operation: &Operation) -> Map<String, Value> {
    let mut responses = Map::new();
    let content = match &operation.answer {
        Answer::Nothing => None,
        Answer::One(document) => {
            Some(json!({ "application/json": { "schema": reference(document) } }))
        }
        Answer::Many(document) => Some(json!({
            "application/json": { "schema": { "type": "array", "items": reference(document) } },
        })),
        Answer::Text(media) => Some(json!({ *media: { "schema": { "type": "string" } } })),
    };
    for status in &operation.statuses {
        let mut response = json!({ "description": meaning(*status) });
        if let Some(content) = content.as_ref().filter(|_| *status != 204) {
            response["content"] = content.clone();
        }
        responses.insert(status.to_string(), response);
    }
    for status in &operation.refusals {
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
        201 => "Created; `Location` is where it is from now on.",
        202 => "Taken up; `Location` is where to look what becomes of it.",
        204 => "Done; there is nothing to tell.",
        400 => "The request is not understood; `details.field` names what is wrong.",
        401 => "No key, or none that is good.",
        403 => "The role of the key is too small.",
        404 => "Not there, or not within the reach of the key.",
        408 => "The body took too long to arrive.",
        409 => "At odds with what is there.",
        410 => "Older than what is kept; begin anew.",
        412 => "Somebody wrote since it was read.",
        413 => "The body is too long.",
        422 => "Understood, and refers to something that is not there or does not fit.",
        429 => "Too many requests of this key; `Retry-After` says when to go on.",
        503 => "Not now; `Retry-After` says when to try again.",
        _ => "See the code.",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::TABLE;

    #[test]
    fn every_route_is_described_once_and_nothing_else_is() {
        let described: Vec<_> = operations().iter().map(|o| (o.method, o.path)).collect();
        let unique: BTreeSet<_> = described.iter().copied().collect();
        assert_eq!(unique.len(), described.len(), "described twice");
        let served: BTreeSet<_> = TABLE.iter().map(|row| (row.method, row.path)).collect();
        assert_eq!(unique, served);
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
        for operation in operations() {
            assert!(!operation.summary.is_empty());
            assert!(operation.query.iter().all(|query| !query.about.is_empty()), "{operation:?}");
        }
    }

    /// `cargo xtask generate` writes it.
    #[test]
    fn the_committed_document_is_the_one_of_the_code() {
        let committed = include_str!("../../../../docs/openapi.json");
        let now = format!("{:#}\n", document());
        assert!(committed == now, "docs/openapi.json is outdated: run `cargo xtask generate`");
    }
}
