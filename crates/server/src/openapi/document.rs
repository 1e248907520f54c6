//! The OpenAPI document. Written as JSON instead of with a builder: the
//! description is regular, so a few functions produce all of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use slipway_app::access::authorise::Terms;
use slipway_core::files::document::{API_VERSION, DocumentKind};
use slipway_core::operations::explanation::ExplainedKind;
use slipway_wire::catalog::Metadata;
use slipway_wire::problem::{MEDIA_TYPE, Problem};

use super::query::query;
use super::{example, texts};
use crate::files::spec;
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
    let schemas = schemas();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in TABLE.iter() {
        let path = format!("/api/v1{}", route.path);
        let method = route.method.to_lowercase();
        paths.entry(path).or_default().insert(method, describe(route, &schemas));
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
            "schemas": schemas,
        },
    })
}

/// The schema of every document that a row names, with all it refers to.
fn schemas() -> Map<String, Value> {
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
    for (name, schema) in &mut schemas {
        bound_labels(schema);
        texts::describe(name, schema);
    }
    let set = |(name, members): (&str, Value)| {
        (name.to_owned(), json!({ "type": "string", "enum": members }))
    };
    schemas.into_iter().chain(texts::sets().into_iter().map(set)).collect()
}

/// Where the JSON Schema of documents is served.
pub(crate) const DOCUMENT_SCHEMA: &str = "/schemas/slipway.dev-v1.json";

pub(crate) async fn schema() -> axum::Json<Value> {
    axum::Json(document_schema())
}

/// The JSON Schema of the documents that people apply, one for each kind, for editors.
pub fn document_schema() -> Value {
    let specs = DocumentKind::ALL.iter().map(|kind| (*kind, spec::of(*kind).schema));
    let specs: Vec<(DocumentKind, Document)> = specs.collect();
    let mut found = Schemas::new();
    specs.iter().for_each(|(_, spec)| (spec.collect)(&mut found));
    let mut schemas = with_sets(found);
    for (kind, spec) in &specs {
        let text = json!({ "type": "string" });
        let mut metadata = json!({
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": { "name": { "type": "string", "minLength": 1 } },
        });
        if kind.in_project() {
            metadata["properties"]["project"] = text.clone();
        }
        if kind.has_labels() {
            let labels = json!({ "type": "object", "additionalProperties": text });
            metadata["properties"]["labels"] = labels;
        }
        let has_required =
            schemas[&spec.name]["required"].as_array().is_some_and(|r| !r.is_empty());
        let required: Vec<&str> = ["apiVersion", "kind", "metadata"]
            .into_iter()
            .chain(has_required.then_some("spec"))
            .collect();
        let whole = json!({
            "type": "object", "required": required, "additionalProperties": false,
            "properties": {
                "apiVersion": { "const": API_VERSION },
                "kind": { "const": kind },
                "metadata": metadata,
                "spec": reference(spec),
            },
        });
        schemas.insert(kind.to_string(), whole);
    }
    let kinds = DocumentKind::ALL.iter().map(|kind| {
        json!({
            "if": { "properties": { "kind": { "const": kind } } },
            "then": { "$ref": format!("#/$defs/{kind}") },
        })
    });
    let mut whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A document that `slipway apply` takes",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": { "kind": { "enum": DocumentKind::ALL } },
        "allOf": kinds.collect::<Vec<_>>(),
        "$defs": schemas,
    });
    move_references(&mut whole);
    whole
}

/// Described schemas with the closed sets that they use.
fn with_sets(found: Schemas) -> BTreeMap<String, Value> {
    let mut schemas: BTreeMap<_, _> =
        found.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    for (name, schema) in &mut schemas {
        texts::describe(name, schema);
    }
    let used = json!(schemas).to_string();
    for (name, members) in texts::sets() {
        if used.contains(&format!("#/components/schemas/{name}\"")) {
            schemas.insert(name.to_owned(), json!({ "type": "string", "enum": members }));
        }
    }
    schemas
}

/// The JSON Schema of `metadata.json`, for editors.
pub fn metadata_schema() -> Value {
    let mut found = Schemas::new();
    (Document::of::<Metadata>().collect)(&mut found);
    let mut schemas = with_sets(found);
    let mut whole = schemas.remove("Metadata").unwrap_or_default();
    whole["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    whole["title"] = json!("metadata.json of a Slipway blueprint");
    whole["$defs"] = json!(schemas);
    move_references(&mut whole);
    whole
}

fn move_references(schema: &mut Value) {
    match schema {
        Value::String(text) if text.starts_with("#/components/schemas/") => {
            *text = text.replace("#/components/schemas/", "#/$defs/");
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        Value::Object(map) => map.values_mut().for_each(move_references),
        _ => {}
    }
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

fn describe(route: &Route, schemas: &Map<String, Value>) -> Value {
    let Terms { least, reach, audit, .. } = route.terms();
    let audited = audit.map_or(String::new(), |verb| format!(" Audited as `{verb}`."));
    let description = format!("Least role: {least}. Reach: {reach}.{audited}");
    let mut described = json!({
        "operationId": identity(route),
        "tags": [route.tag()],
        "summary": route.summary,
        "description": description,
        "parameters": parameters(route),
        "responses": responses(route, schemas),
    });
    if let Some(body) = &route.body {
        described["requestBody"] = json!({
            "required": true,
            "content": { "application/json": {
                "schema": reference(body), "example": example::document(&body.name, schemas),
            } },
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
            "id" | "credential" => json!({
                "type": "string",
                "description": "An id, the beginning of one, or a name; refused if it fits several.",
            }),
            "kind" if route.tag() == "protections" => {
                json!({ "$ref": "#/components/schemas/SubjectKind" })
            }
            "kind" => json!({ "type": "string", "enum": ExplainedKind::ALL }),
            _ => text.clone(),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    for name in &route.query {
        let (about, schema) = query(route, name);
        let mut parameter =
            json!({ "name": name, "in": "query", "description": about, "schema": schema });
        if route.required == Some(*name) {
            parameter["required"] = json!(true);
        }
        parameters.push(parameter);
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

fn responses(route: &Route, schemas: &Map<String, Value>) -> Map<String, Value> {
    let mut responses = Map::new();
    let content = match &route.answer {
        Answer::Nothing => None,
        Answer::One(document) => Some(json!({ "application/json": {
            "schema": reference(document), "example": example::document(&document.name, schemas),
        } })),
        Answer::Array(document) => Some(json!({ "application/json": {
            "schema": { "type": "array", "items": reference(document) },
            "example": [example::document(&document.name, schemas)],
        } })),
        Answer::Text(media) => Some(json!({ *media: {
            "schema": { "type": "string" }, "example": example::stream(media, schemas),
        } })),
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
            "content": { MEDIA_TYPE: {
                "schema": reference(&Document::of::<Problem>()),
                "example": example::refusal(*status, &format!("/api/v1{}", route.path)),
            } },
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
        304 => "Nothing changed since the tag in `If-None-Match`.",
        400 => "The request is not understood; `errors` names every field that is wrong.",
        401 => "No key, or one that is malformed, unknown, expired or revoked.",
        403 => "The role of the key is not sufficient.",
        404 => "Does not exist, or is outside the reach of the key.",
        408 => "The body took too long to arrive.",
        409 => "In conflict with the current state.",
        410 => "The cursor is older than the oldest event; list the current state and start again.",
        412 => "It changed since it was read; read it again.",
        413 => "The body is too long.",
        422 => "Refers to something that does not exist or does not fit; `errors` has all faults.",
        429 => "Too many requests of this key; `Retry-After` says when to try again.",
        501 => "Not offered by this server.",
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
            // A flag of every deletion.
            let described = *operation == Operation::DeletionBreakGlass
                || TABLE.iter().any(|row| row.operation == *operation);
            assert!(described, "{operation:?}");
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
            assert!(route.query.iter().all(|name| !query(route, name).0.is_empty()), "{route:?}");
        }
    }

    /// Texts that are neither a time nor an id nor a member of a closed set. A new
    /// text has to be one of those, or is named here.
    const FREE: &[&str] = &[
        "$schema",
        "about",
        "access",
        "action",
        "actor",
        "actor_name",
        "apiVersion",
        "api_url",
        "authorities",
        "blueprint",
        "blueprint_version",
        "by",
        "checksum",
        "claimed_by",
        "cloud",
        "cluster",
        "cluster_name",
        "command",
        "composition",
        "composition_name",
        "confirm",
        "container",
        "correlation_id",
        "created_by",
        "credential",
        "deregistered_by",
        "deregistered_reason",
        "description",
        "detail",
        "display_name",
        "error",
        "event_type",
        "expected",
        "failure_reason",
        "field",
        "found_version",
        "from",
        "hostname_pattern",
        "group",
        "handle",
        "hostname",
        "initial_pak",
        "instance",
        "ip_address",
        "issued_by",
        "key",
        "kv_mount",
        "kv_path",
        "label",
        "last_error",
        "lifted_by",
        "lifted_reason",
        "long_term_sink_hint",
        "mesh_cidr",
        "mesh_ip",
        "message",
        "name",
        "namespace",
        "namespace_prefix",
        "next",
        "notice",
        "older_history",
        "pak",
        "parameters_schema",
        "paused",
        "plural",
        "pod",
        "problem",
        "profile",
        "project",
        "provider",
        "provider_config",
        "public_url",
        "reason",
        "region",
        "remedy",
        "removal_reason",
        "removal_requested_by",
        "rename",
        "requested_by",
        "resolution",
        "resolved_by",
        "resource",
        "set_by",
        "slug",
        "status",
        "subject",
        "substrate_uid",
        "table",
        "target",
        "target_name",
        "template_content",
        "tenant",
        "title",
        "to",
        "token",
        "type",
        "uid",
        "user_agent",
        "value",
        "verb",
        "version",
        "waiting_for",
        "waiting_reason",
        "wanted_version",
        "why",
        "worker",
        "workspace",
        "xr_name",
        "xrd",
        "yaml_checksum",
        "yaml_content",
    ];

    /// What has such a name is free text in these documents only.
    const FREE_HERE: &[(&str, &str)] = &[
        ("TenantDifference", "kind"),
        ("TenantDifference", "object"),
        ("TenantDifference", "found"),
        ("AgentK8sEvent", "source"),
        ("AgentPodLog", "line"),
        ("AuthResponse", "agent"),
        ("AuthResponse", "generator"),
        ("AuthResponse", "installation"),
        ("ConfirmPruneRequest", "digest"),
        ("AgentRemoval", "agent"),
        ("AgentRemoval", "stack"),
        ("DeploymentHealth", "summary"),
        ("PruneConfirmation", "digest"),
        ("PruneRefusal", "digest"),
        ("ResourceHealth", "kind"),
        ("CompositeType", "kind"),
        ("AppliedDocument", "secret"),
        ("Apply", "source"),
        ("DeclaredObject", "origin"),
        ("Document", "apiVersion"),
        ("FieldChange", "field"),
        ("PlannedServer", "server"),
        ("SubmittedDocument", "origin"),
        ("SubmittedDocument", "plan"),
        ("WorkspacePlan", "digest"),
        ("ApiKey", "owner"),
        ("ApiKey", "rotated_by"),
        ("CreateKey", "owner"),
        ("DeletionPlan", "approved_by"),
        ("DeletionPlan", "composed_missing"),
        ("DeletionPlan", "digest"),
        ("DeletionPlan", "planned_by"),
        ("TeardownWorkspace", "plan"),
        ("ExplainedPart", "kind"),
        ("ExplainedPart", "state"),
        ("Explanation", "state"),
        ("KeptObject", "external_name"),
        ("KeptObject", "find"),
        ("KeptObject", "object"),
        ("Logs", "text"),
        ("PlanDeletion", "reference"),
        ("PurgeDeletions", "name_prefix"),
        // Of a refusal or of a blocker.
        ("PlanRefusal", "code"),
        // Of a row or of an object outside.
        ("PlanStage", "kind"),
        ("RestoreConflict", "code"),
        // Of a refusal, or of the command that could not read the file.
        ("FileFault", "code"),
        ("FileFault", "file"),
    ];

    #[test]
    fn every_text_has_a_format_or_a_closed_set_or_is_free() {
        let document = document();
        let mut undescribed = Vec::new();
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            let parts = schema["allOf"].as_array().into_iter().flatten();
            for part in parts.chain([schema]) {
                let properties = part["properties"].as_object();
                for (property, of_property) in properties.into_iter().flatten() {
                    let described = !texts::is_text(of_property)
                        || of_property.get("format").is_some()
                        || FREE.contains(&property.as_str())
                        || FREE_HERE.contains(&(name.as_str(), property.as_str()));
                    if !described {
                        undescribed.push(format!("{name}.{property}"));
                    }
                }
            }
        }
        assert!(undescribed.is_empty(), "name them in openapi/texts.rs: {undescribed:?}");
        for (set, members) in texts::sets() {
            assert!(members.as_array().unwrap().iter().all(Value::is_string), "{set}");
            assert!(
                document.to_string().contains(&format!("schemas/{set}\"")),
                "{set} is not used"
            );
        }
    }

    /// They have defaults for the answers of older servers only.
    #[test]
    fn what_every_answer_has_is_required() {
        let schemas = schemas();
        for (name, field) in [
            ("ResourceDetail", "attempts"),
            ("ResourceDetail", "history"),
            ("AttemptSummary", "created_at"),
            ("AttemptSummary", "blueprint_version"),
            ("Project", "mesh_cidr"),
            ("BlueprintVersion", "install_definitions"),
            ("BlueprintVersion", "surge"),
        ] {
            let parts = schemas[name]["allOf"].as_array().into_iter().flatten();
            let required =
                parts.chain([&schemas[name]]).filter_map(|part| part["required"].as_array());
            assert!(required.flatten().any(|one| one == field), "{name}.{field}");
        }
    }

    /// And each is what the server reads and writes.
    #[test]
    fn every_body_has_an_example_that_its_type_reads() {
        let document = document();
        let mut bodies = 0;
        for route in TABLE.iter() {
            let path = &document["paths"][format!("/api/v1{}", route.path)];
            let described = &path[route.method.to_lowercase()];
            let answers = described["responses"].as_object().unwrap().values();
            for body in answers.chain([&described["requestBody"]]) {
                for content in body["content"].as_object().into_iter().flat_map(Map::values) {
                    assert!(content.get("example").is_some(), "{route:?}: {content}");
                    bodies += 1;
                }
            }
            if let Some(body) = &route.body {
                let example = &described["requestBody"]["content"]["application/json"]["example"];
                (body.read)(example.clone()).unwrap_or_else(|error| {
                    panic!("{route:?}: {error}: {example}");
                });
            }
            let status = route.statuses[0].to_string();
            let example = &described["responses"][status]["content"]["application/json"]["example"];
            let read = match &route.answer {
                Answer::One(answer) => (answer.read)(example.clone()),
                Answer::Array(answer) => (answer.read)(example[0].clone()),
                Answer::Nothing | Answer::Text(_) => Ok(()),
            };
            read.unwrap_or_else(|error| panic!("{route:?}: {error}: {example}"));
        }
        assert!(bodies > 400, "{bodies}");
    }

    #[test]
    fn the_schema_of_a_blueprint_is_complete() {
        let schema = metadata_schema();
        let text = schema.to_string();
        for reference in text.split("#/$defs/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schema["$defs"].get(name).is_some(), "{name}");
        }
        assert!(!text.contains("#/components"), "{text}");
        let committed = include_str!("../../../../docs/blueprint-metadata.schema.json");
        assert!(
            committed == format!("{schema:#}\n"),
            "docs/blueprint-metadata.schema.json is outdated: run `cargo xtask generate`"
        );
    }

    #[test]
    fn the_schema_of_documents_is_complete() {
        let schema = document_schema();
        let text = schema.to_string();
        for reference in text.split("#/$defs/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schema["$defs"].get(name).is_some(), "{name}");
        }
        assert!(!text.contains("#/components"), "{text}");
        let committed = include_str!("../../../../docs/schemas/slipway.dev-v1.json");
        let outdated = "docs/schemas/slipway.dev-v1.json is outdated: run `cargo xtask generate`";
        assert!(committed == format!("{schema:#}\n"), "{outdated}");
    }

    /// `cargo xtask generate` writes the file.
    #[test]
    fn the_committed_document_is_the_one_of_the_code() {
        let committed = include_str!("../../../../docs/openapi.json");
        let now = format!("{:#}\n", document());
        assert!(committed == now, "docs/openapi.json is outdated: run `cargo xtask generate`");
    }
}
