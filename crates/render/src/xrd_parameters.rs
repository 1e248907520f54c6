//! The schema of `spec.parameters` of an XRD as JSON Schema, for a blueprint that declares no
//! parameters. An OpenAPI schema of Kubernetes is a dialect of its own: what has a meaning in
//! JSON Schema is translated, what has none is left to the API server, which checks it when
//! the composite is applied.

use serde_json::{Map, Value, json};
use slipway_core::catalog::parameters::{IMMUTABLE, is_known_format, pattern_problem};
use slipway_core::placement::provider_config;

use crate::injection::{SITE_HELM_VALUES, SITE_PROVIDER_SECRET};
use crate::xrd::Schema;

/// Keywords that mean the same in both.
const SAME: [&str; 20] = [
    "title",
    "description",
    "type",
    "default",
    "enum",
    "required",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "pattern",
    "format",
];

/// `None` if the XRD names no parameter: one that only preserves unknown fields, as for an
/// injection site, declares none.
pub(crate) fn translated(parameters: &Schema) -> Option<Value> {
    let Value::Object(mut schema) = part(parameters.as_value(), true, true) else { return None };
    for site in [SITE_HELM_VALUES, SITE_PROVIDER_SECRET] {
        remove(&mut schema, site);
    }
    // We fill it in if the declaration does not.
    not_required(&mut schema, provider_config::PARAMETER);
    // A name that the XRD does not list is a slip, even if it would be kept.
    if schema.get("additionalProperties").is_none_or(Value::is_boolean) {
        schema.remove("additionalProperties");
    }
    let named = schema.get("properties").and_then(Value::as_object);
    let named = named.is_some_and(|named| !named.is_empty());
    let others = schema.contains_key("additionalProperties");
    schema.insert("type".to_owned(), json!("object"));
    schema.remove("default");
    schema.remove(IMMUTABLE);
    (named || others).then_some(Value::Object(schema))
}

fn remove(schema: &mut Map<String, Value>, name: &str) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove(name);
    }
    not_required(schema, name);
}

fn not_required(schema: &mut Map<String, Value>, name: &str) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|one| one != name);
    }
}

/// One schema. `structural` is false within `allOf` and the like, where an API server prunes
/// nothing; `by_name` is false below the items of an array, where no mark can stand.
fn part(given: &Value, structural: bool, by_name: bool) -> Value {
    let Value::Object(given) = given else { return json!({}) };
    let mut schema: Map<String, Value> = Map::new();
    for (keyword, value) in given {
        if SAME.contains(&keyword.as_str()) {
            schema.insert(keyword.clone(), value.clone());
        }
    }
    bounds(&mut schema);
    texts(&mut schema);
    // A value that is not wanted is left out, so null is none.
    if let Some(options) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        options.retain(|option| !option.is_null());
    }
    let is = |keyword: &str| given.get(keyword) == Some(&Value::Bool(true));
    if is("x-kubernetes-int-or-string") {
        schema.insert("type".to_owned(), json!(["integer", "string"]));
    }
    if given.get("x-kubernetes-list-type") == Some(&json!("set")) {
        schema.insert("uniqueItems".to_owned(), json!(true));
    }
    if by_name && structural && is_immutable(given) {
        schema.insert(IMMUTABLE.to_owned(), json!(true));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(parts)) = given.get(keyword) {
            let parts: Vec<_> = parts.iter().map(|one| part(one, false, false)).collect();
            schema.insert(keyword.to_owned(), json!(parts));
        }
    }
    if let Some(not) = given.get("not") {
        schema.insert("not".to_owned(), part(not, false, false));
    }
    if let Some(items) = given.get("items") {
        schema.insert("items".to_owned(), part(items, structural, false));
    }
    if let Some(Value::Object(properties)) = given.get("properties") {
        let each = properties.iter();
        let each = each.map(|(name, one)| (name.clone(), part(one, structural, by_name)));
        schema.insert("properties".to_owned(), Value::Object(each.collect()));
    }
    let open = is("x-kubernetes-preserve-unknown-fields") || is("x-kubernetes-embedded-resource");
    match given.get("additionalProperties") {
        Some(others @ Value::Object(_)) => {
            let others = part(others, structural, by_name);
            schema.insert("additionalProperties".to_owned(), others);
        }
        Some(Value::Bool(others)) => {
            schema.insert("additionalProperties".to_owned(), json!(others));
        }
        // The API server would prune it.
        _ if structural && !open && given.get("type") == Some(&json!("object")) => {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        _ => {}
    }
    defaulted(&mut schema);
    Value::Object(schema)
}

/// In OpenAPI `exclusiveMinimum` is a flag of `minimum`.
fn bounds(schema: &mut Map<String, Value>) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(Value::Bool(exclusive)) = schema.get(flag).cloned() else { continue };
        schema.remove(flag);
        if let Some(limit) = schema.get(bound).cloned().filter(|_| exclusive) {
            schema.remove(bound);
            schema.insert(flag.to_owned(), limit);
        }
    }
}

/// A pattern or format that only the API server understands is left to it.
fn texts(schema: &mut Map<String, Value>) {
    let text = |schema: &Map<String, Value>, keyword: &str| {
        schema.get(keyword).and_then(Value::as_str).map(str::to_owned)
    };
    if text(schema, "pattern").is_some_and(|pattern| pattern_problem(&pattern).is_some()) {
        schema.remove("pattern");
    }
    if text(schema, "format").is_some_and(|format| !is_known_format(&format)) {
        schema.remove("format");
    }
}

/// The API server fills in defaults before it asks what is required.
fn defaulted(schema: &mut Map<String, Value>) {
    let has_default = |one: &Value| {
        one.as_str().is_some_and(|name| {
            let field = schema.get("properties").and_then(|named| named.get(name));
            field.is_some_and(|field| field.get("default").is_some())
        })
    };
    let Some(required) = schema.get("required").and_then(Value::as_array) else { return };
    let required: Vec<_> = required.iter().filter(|one| !has_default(one)).cloned().collect();
    schema.insert("required".to_owned(), json!(required));
}

/// Whether a rule says that the value never changes. Other rules are left to the API server.
fn is_immutable(given: &Map<String, Value>) -> bool {
    let rules = given.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.into_iter().flatten().any(|rule| {
        let text: String = rule["rule"].as_str().unwrap_or_default().split_whitespace().collect();
        text == "self==oldSelf" || text == "oldSelf==self"
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::pair::parameters_of_xrd;

    fn xrd(parameters: &str) -> String {
        format!(
            "apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {{ name: xs.nodes.example.org }}
spec:
  group: nodes.example.org
  names: {{ kind: X, plural: xs }}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              parameters: {parameters}
"
        )
    }

    const RICH: &str = r#"{
        type: object,
        required: [region, size, providerConfigName, providerSecret],
        properties: {
            providerConfigName: {type: string},
            providerSecret: {type: object, x-kubernetes-preserve-unknown-fields: true},
            region: {type: string, nullable: true, enum: [eu, us, null],
                     x-kubernetes-validations: [{rule: "self  ==  oldSelf", message: fixed}]},
            size: {type: integer, format: int64, default: 10, minimum: 0, exclusiveMinimum: true},
            port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]},
            quantity: {type: string, format: quantity, pattern: "(?=x)y"},
            zones: {type: array, x-kubernetes-list-type: set,
                    items: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}},
            disk: {type: object, x-kubernetes-validations: [{rule: "self.size >= oldSelf.size"}],
                   properties: {size: {type: integer}, open: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
            labels: {type: object, additionalProperties: {type: string}},
        }}"#;

    #[test]
    fn the_whole_schema_of_an_xrd_is_taken() {
        let schema = parameters_of_xrd(&xrd(&RICH.replace('\n', " "))).unwrap();
        insta::assert_json_snapshot!(schema.document());
        assert!(schema.takes_provider_config_name());
        let check = |values: Value| {
            let values: BTreeMap<String, Value> = serde_json::from_value(values).unwrap();
            schema.validate(values).map(|_| ()).map_err(|refusal| {
                refusal.faults().filter_map(|one| one.field.clone()).collect::<Vec<_>>()
            })
        };
        let good = json!({
            "region": "eu", "port": "http", "zones": ["a"], "labels": { "x": "y" },
            "disk": { "size": 1, "open": { "any": [1] } },
        });
        assert_eq!(check(good), Ok(()));
        let wrong = json!({
            "size": 0, "port": true, "zones": ["a", "a"], "labels": { "x": 1 },
            "disk": { "sise": 1 }, "providerSecret": {},
        });
        let fields = [
            "parameters.disk.sise",
            "parameters.labels.x",
            "parameters.port",
            "parameters.providerSecret",
            "parameters.size",
            "parameters.zones",
            "parameters.region",
        ];
        assert_eq!(check(wrong).unwrap_err(), fields);
    }

    #[test]
    fn an_xrd_without_names_declares_none_and_one_beyond_the_limits_says_so() {
        for none in [
            "{type: object, x-kubernetes-preserve-unknown-fields: true}",
            "{type: object, properties: {helmValues: {type: object}}}",
            "{type: object}",
        ] {
            assert!(parameters_of_xrd(&xrd(none)).unwrap().is_empty(), "{none}");
        }
        assert!(parameters_of_xrd("a: [").unwrap().is_empty());
        let name = "{type: object, properties: {a.b: {type: string}}}";
        let faults = parameters_of_xrd(&xrd(name)).unwrap_err();
        assert_eq!(faults[0].field, "xrd.spec.parameters.properties.a.b");
        assert!(faults[0].to_string().contains("declare the parameters in the metadata"));
    }
}
