//! Both forms of a schema, the sentences that people read, and attacks.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parameter(name: &str, kind: ParameterType, required: bool, default: Option<Value>) -> Parameter {
    Parameter { name: name.to_owned(), kind, required, immutable: false, default }
}

fn schema() -> ParameterSchema {
    ParameterSchema::new(vec![
        parameter("size", ParameterType::Integer, true, None),
        parameter("public", ParameterType::Boolean, false, Some(json!(false))),
        parameter("region", ParameterType::String, false, None),
    ])
    .unwrap()
}

fn values(value: Value) -> BTreeMap<String, Value> {
    serde_json::from_value(value).unwrap()
}

#[test]
fn only_supplied_values_are_kept() {
    let kept = schema().validate(values(json!({"size": 3}))).unwrap();
    assert_eq!(kept.as_map(), &values(json!({"size": 3})));
}

#[test]
fn each_fault_names_its_parameter() {
    let table = [
        (json!({}), "parameters.size"),
        (json!({"size": "3"}), "parameters.size"),
        (json!({"size": 1.5}), "parameters.size"),
        (json!({"size": 3, "public": 1}), "parameters.public"),
        (json!({"size": 3, "region": null}), "parameters.region"),
        (json!({"size": 3, "region": "a\u{0}"}), "parameters.region"),
        (json!({"size": 3, "color": "red"}), "parameters.color"),
    ];
    for (input, field) in table {
        let refusal = schema().validate(values(input.clone())).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ParameterValuesInvalid, "{input}");
        assert_eq!(refusal.field.as_deref(), Some(field), "{input}");
    }
}

#[test]
fn every_fault_is_named_at_once() {
    let wrong = json!({"size": "3", "public": 1, "regoin": "eu"});
    let refusal = schema().validate(values(wrong)).unwrap_err();
    let fields: Vec<_> = refusal.faults().filter_map(|fault| fault.field.as_deref()).collect();
    assert_eq!(fields, ["parameters.public", "parameters.regoin", "parameters.size"]);
    assert!(refusal.others()[0].message.contains("did you mean `region`?"), "{refusal:?}");
}

#[test]
fn a_schema_that_contradicts_itself_is_refused() {
    let integer = ParameterType::Integer;
    let table = [
        vec![parameter("a", integer, true, Some(json!(1)))],
        vec![parameter("a", integer, false, Some(json!("1")))],
        vec![parameter("a", integer, false, None), parameter("a", integer, false, None)],
        vec![parameter("", integer, false, None)],
        vec![parameter("helmValues", integer, false, None)],
    ];
    for parameters in table {
        assert!(ParameterSchema::new(parameters.clone()).is_err(), "{parameters:?}");
    }
}

/// A schema with a bit of everything.
fn written() -> Value {
    json!({
        "$schema": DIALECTS[0],
        "type": "object",
        "required": ["disk"],
        "properties": {
            "region": { "type": "string", "enum": ["eu", "us"], "x-immutable": true },
            "ratio": { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
            "count": { "type": "integer", "minimum": 1, "maximum": 10, "default": 3 },
            "name": { "type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5 },
            "when": { "type": "string", "format": "date" },
            "mode": { "const": "fast" },
            "port": { "type": ["integer", "string"] },
            "either": { "anyOf": [{ "type": "integer" }, { "type": "boolean" }] },
            "zones": {
                "type": "array", "maxItems": 3, "uniqueItems": true,
                "items": { "$ref": "#/$defs/zone" },
            },
            "disk": {
                "type": "object", "required": ["size"], "additionalProperties": false,
                "properties": {
                    "size": { "type": "integer", "minimum": 10, "multipleOf": 2 },
                    "kind": { "$ref": "#/$defs/zone", "x-immutable": true },
                },
            },
            "tags": {
                "type": "object", "additionalProperties": { "type": "string", "x-immutable": true },
                "propertyNames": { "maxLength": 8 }, "maxProperties": 2,
            },
        },
        "$defs": { "zone": { "type": "string", "minLength": 1 } },
    })
}

fn read(schema: Value) -> ParameterSchema {
    ParameterSchema::read(schema).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// Every fault as `field: message`.
fn faults(schema: &ParameterSchema, given: Value) -> Vec<String> {
    let refusal = schema.validate(values(given)).unwrap_err();
    refusal
        .faults()
        .map(|fault| format!("{}: {}", fault.field.as_deref().unwrap_or("-"), fault.message))
        .collect()
}

/// Every fault of a schema as its message.
fn refused(schema: Value) -> Vec<String> {
    match ParameterSchema::read(schema) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

/// A schema with one parameter.
fn of(property: Value) -> Value {
    let mut schema = json!({ "type": "object", "properties": {} });
    schema["properties"]["a"] = property;
    schema
}

#[test]
fn what_does_not_fit_is_said_with_its_path_in_plain_words() {
    let schema = read(written());
    let wrong = json!({
        "region": "asia", "ratio": 0, "count": 11, "name": "A", "when": "today", "mode": "slow",
        "port": true, "either": "x", "zones": ["a", "", "a", 3],
        "disk": { "size": 11, "kind": 1, "sise": 1 },
        "tags": { "a.b": 1, "muchtoolong": "x" }, "regoin": "eu",
    });
    insta::assert_snapshot!(faults(&schema, wrong.clone()).join("\n"));
    assert_eq!(faults(&schema, wrong.clone()), faults(&schema, wrong), "the same order every time");
    assert_eq!(
        faults(&schema, json!({ "count": "x", "tags": { "a": null } })),
        [
            "parameters.count: parameter `count` must be of type integer",
            "parameters.tags.a: parameter `tags.a` must not be null; leave it out instead",
            "parameters.disk: parameter `disk` is required (object)",
        ],
        "what is missing comes last",
    );
}

#[test]
fn what_fits_is_kept_in_one_form_of_numbers() {
    let schema = read(written());
    let given = json!({ "disk": { "size": 20.0, "kind": "ssd" }, "ratio": 0.5, "zones": ["a"] });
    let kept = schema.validate(values(given)).unwrap();
    let expected = json!({ "disk": { "size": 20, "kind": "ssd" }, "ratio": 0.5, "zones": ["a"] });
    assert_eq!(json!(kept), expected);
    let again = schema.validate(kept.as_map().clone()).unwrap();
    assert_eq!(again, kept);
    for number in [json!(u64::MAX), json!(1e300), json!(-1e19)] {
        let open = read(of(json!({})));
        assert_eq!(faults(&open, json!({ "a": number })).len(), 1, "{number}");
    }
    assert_eq!(
        json!(
            read(of(json!({}))).validate(values(json!({ "a": [-0.0, 1e15, i64::MIN] }))).unwrap()
        ),
        json!({ "a": [0, 1_000_000_000_000_000_i64, i64::MIN] })
    );
}

#[test]
fn values_that_are_too_large_are_refused_with_the_limit() {
    let open = read(json!({ "type": "object", "additionalProperties": true }));
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    let many: Vec<_> = (0..5_000).collect();
    let long = "x".repeat(65_537);
    let texts = vec!["x".repeat(60_000); 5];
    for (value, problem) in [
        (deep, "is nested deeper than 16 levels"),
        (json!(many), "are more than 4096 values"),
        (json!(long), "must be at most 65536 bytes without U+0000"),
        (json!([{ "b": "a\u{0}" }]), "must be at most 65536 bytes without U+0000"),
        (json!({ "a\u{0}": 1 }), "must have a name of at most 253 bytes without U+0000"),
        (json!(texts), "have more than 262144 bytes"),
    ] {
        let told = faults(&open, json!({ "a": value }));
        assert!(told.len() == 1 && told[0].contains(problem), "{told:?}");
    }
    let unknown: Value =
        (0..100).map(|n| (format!("n{n}"), json!(1))).collect::<Map<_, _>>().into();
    assert_eq!(faults(&schema(), unknown).len(), MAX_FAULTS);
}

#[test]
fn what_is_marked_does_not_change() {
    let schema = read(written());
    let changes = |before: Value, after: Value| {
        let of = |value| ParameterValues::from_stored(values(value));
        schema.immutable_changes(&of(before), &of(after))
    };
    let before = json!({ "region": "eu", "count": 1, "disk": { "size": 10, "kind": "a" }, "tags": { "x": "1" } });
    assert!(changes(before.clone(), before.clone()).is_empty());
    let free = json!({ "region": "eu", "count": 2, "disk": { "size": 20, "kind": "a" }, "tags": { "x": "1" } });
    assert!(changes(before.clone(), free).is_empty());
    let other = json!({ "region": "us", "disk": { "size": 10, "kind": "b" }, "tags": { "x": "2", "y.z": "1" } });
    assert_eq!(
        changes(before.clone(), other),
        [
            "parameters.disk.kind",
            "parameters.region",
            "parameters.tags.x",
            "parameters.tags[\"y.z\"]"
        ]
    );
    assert_eq!(
        changes(before, json!({ "count": 1 })),
        ["parameters.disk.kind", "parameters.region", "parameters.tags.x"],
        "what goes has changed, too",
    );
    let listed = read(json!({ "parameters": [
        { "name": "region", "type": "string", "immutable": true }, { "name": "size", "type": "integer" },
    ] }));
    let of = |value| ParameterValues::from_stored(values(value));
    let (before, after) = (of(json!({ "size": 1 })), of(json!({ "size": 2, "region": "eu" })));
    assert_eq!(listed.immutable_changes(&before, &after), ["parameters.region"]);
}

#[test]
fn a_patch_changes_what_it_names() {
    let before = ParameterValues::from_stored(values(
        json!({ "a": 1, "disk": { "size": 1, "kind": "x" }, "zones": ["a"] }),
    ));
    let merged = |patch: Value| before.merged(&values(patch)).map(|merged| json!(merged));
    assert_eq!(
        merged(
            json!({ "a": null, "disk": { "size": 2, "kind": null }, "zones": [], "b": { "c": 1 } })
        ),
        Ok(json!({ "disk": { "size": 2 }, "zones": [], "b": { "c": 1 } })),
    );
    for (wrong, field) in [
        (json!({ "x": null }), "parameters.x"),
        (json!({ "disk": { "x": null } }), "parameters.disk.x"),
    ] {
        assert_eq!(merged(wrong).unwrap_err().field.as_deref(), Some(field));
    }
}

#[test]
fn a_patch_to_other_values_names_what_differs() {
    let of = |value| ParameterValues::from_stored(values(value));
    let before = of(json!({ "a": 1, "disk": { "size": 1, "kind": "x" }, "same": true }));
    let target = values(json!({ "disk": { "size": 2 }, "same": true, "b": { "c": 1 } }));
    let patch = before.patch_to(&target);
    let named = json!({ "a": null, "disk": { "size": 2, "kind": null }, "b": { "c": 1 } });
    assert_eq!(json!(patch), named);
    assert_eq!(before.merged(&patch), Ok(target));
}

#[test]
fn a_schema_is_stored_as_it_was_written() {
    for given in [
        written(),
        json!({ "parameters": [{ "name": "a", "type": "string", "required": false, "immutable": true }] }),
        json!({ "parameters": [] }),
    ] {
        let schema = read(given.clone());
        assert_eq!(json!(schema), given);
        let stored: ParameterSchema = serde_json::from_value(given).unwrap();
        assert_eq!(stored, schema);
        assert_eq!(stored.schema, schema.schema);
    }
    assert!(ParameterSchema::default().is_empty() && !read(written()).is_empty());
    assert!(read(json!({ "type": "object" })).is_empty());
}

#[test]
fn people_read_every_parameter_with_its_bounds() {
    let rows = read(written()).described();
    let line = |row: &Described| {
        let marks = [(row.required, " required"), (row.immutable, " immutable")];
        let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        let default = row.default.as_ref().map(|value| format!(" = {value}")).unwrap_or_default();
        format!("{}: {}{default}{marks} [{}]", row.name, row.kind, row.limits)
    };
    let lines: Vec<_> = rows.iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// Each rule of publication, by what it says.
#[test]
fn a_schema_that_cannot_be_used_is_refused_with_the_reason() {
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "type": "array", "items": inner }));
    let wide: Map<_, _> = (0..10_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let doubling: Map<_, _> = (0..12)
        .map(|n| (format!("d{n}"), json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }, { "$ref": format!("#/$defs/d{}", n + 1) }] })))
        .chain([("d12".to_owned(), json!({}))])
        .collect();
    let branches = vec![json!({ "type": "string" }); 65];
    let patterns = vec![json!({ "pattern": "a" }); 33];
    let options: Vec<_> = (0..513).collect();
    let table = [
        (json!(3), "must be a schema with `type: object`"),
        (json!({}), "must be a schema with `type: object`"),
        (
            json!({ "type": "object", "$schema": "http://json-schema.org/draft-07/schema#" }),
            "draft/2020-12/schema, or left out",
        ),
        (json!({ "type": "object", "properties": { "a b": {} } }), "1 to 63 letters"),
        (json!({ "type": "object", "properties": { "helmValues": {} } }), "injection site"),
        (json!({ "type": "object", "required": ["a"] }), "is not among the properties"),
        (of(json!({ "minumum": 1 })), "did you mean `minimum`?"),
        (of(json!({ "unevaluatedProperties": false })), "not a keyword that is understood"),
        (of(json!({ "$id": "http://x/" })), "not a keyword that is understood"),
        (
            of(json!({ "minimum": "1" })),
            "`parameter_schema.properties.a.minimum` must be of type number",
        ),
        (of(json!({ "type": "text" })), "`parameter_schema.properties.a.type`"),
        (of(json!({ "type": ["string", "null"] })), "is left out"),
        (of(json!({ "format": "regex" })), "formats are date"),
        (of(json!({ "$ref": "http://example.org/x" })), "as #/$defs/NAME"),
        (of(json!({ "$ref": "#" })), "as #/$defs/NAME"),
        (of(json!({ "$ref": "#/$defs/none" })), "as #/$defs/NAME"),
        (of(json!({ "$defs": {} })), "top of the document"),
        (of(json!({ "pattern": "(?=a)b" })), "look-around"),
        (of(json!({ "pattern": "(a)\\1" })), "back-reference"),
        (of(json!({ "pattern": "(((a{1,50}){1,50}){1,50}){1,50}" })), "too much memory"),
        (of(json!({ "pattern": "[" })), "is not a pattern"),
        (of(json!({ "pattern": "a".repeat(513) })), "is longer than 512 bytes"),
        (of(json!({ "patternProperties": { "(?!x)": {} } })), "look-around"),
        (of(json!({ "allOf": patterns })), "more than 32 patterns"),
        (of(json!({ "enum": options })), "more than 512 values"),
        (of(json!({ "x-immutable": "yes" })), "must be true or false"),
        (of(json!({ "items": { "x-immutable": true } })), "an array is immutable as a whole"),
        (of(json!({ "anyOf": [{ "x-immutable": true }] })), "must be on a property"),
        (json!({ "type": "object", "x-immutable": true }), "must be on a property"),
        (of(json!({ "anyOf": branches })), "more than 64 branches"),
        (
            of(json!({ "type": "integer", "default": "x" })),
            "`parameter_schema.a` has a default that does not fit: must be of type integer",
        ),
        (
            of(
                json!({ "type": "object", "properties": { "b": { "type": "object", "required": ["c"], "default": {} } } }),
            ),
            "`parameter_schema.a.b` has a default that does not fit",
        ),
        (
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "default": 1 } } }),
            "remove one of the two",
        ),
        (of(deep), "nested deeper than 32"),
        (json!({ "type": "object", "properties": wide }), "more than 1000 schemas"),
        (
            json!({ "type": "object", "properties": (0..1_001).map(|n| (format!("p{n}"), json!({}))).collect::<Map<_, _>>() }),
            "more than 1000 schemas",
        ),
        (
            json!({ "type": "object", "$defs": doubling, "properties": { "a": { "$ref": "#/$defs/d0" } } }),
            "more than 1000 schemas",
        ),
        (
            json!({ "type": "object", "$defs": { "a": { "$ref": "#/$defs/a" } } }),
            "leads back to itself",
        ),
        (
            json!({ "type": "object", "$defs": { "a": { "items": { "$ref": "#/$defs/b" } }, "b": { "properties": { "x": { "$ref": "#/$defs/a" } } } } }),
            "leads back to itself",
        ),
        (of(json!({ "description": "x".repeat(131_072) })), "the most are 131072"),
        (of(json!({ "description": "a\u{0}" })), "contains U+0000"),
        (of(json!({ "maximum": 1e300 })), "outside of 64 bits"),
        (json!({ "parameters": {} }), "must be a list"),
        (json!({ "parameters": vec![json!({}); 1_001] }), "more than 1000 parameters"),
        (
            json!({ "parameters": [{ "name": "a", "type": "number" }] }),
            "other types need a JSON Schema",
        ),
        (json!({ "parameters": [], "type": "object" }), "is not known beside `parameters`"),
    ];
    for (schema, problem) in table {
        let told = refused(schema.clone());
        assert!(told.iter().any(|one| one.contains(problem)), "{problem}: {told:?}");
        assert!(told.iter().all(|one| one.len() < 500), "{told:?}");
    }
    let many = refused(json!({ "type": "object", "properties": {
        "a": { "minumum": 1, "pattern": "[" }, "b": { "$ref": "x" },
    } }));
    assert_eq!(many.len(), 3, "all at once: {many:?}");
}

/// The largest that is allowed, with the worst values that are allowed.
#[test]
fn the_worst_that_is_allowed_is_checked_in_time() {
    let branches: Vec<_> = (0..64).map(|n| json!({ "const": n })).collect();
    let each: Vec<_> =
        (0..800).map(|n| json!({ "not": { "const": format!("{n}") } })).take(400).collect();
    let items = json!({ "anyOf": branches, "allOf": each, "pattern": "^(a|b)*c$" });
    let schema = read(of(json!({ "type": "array", "uniqueItems": true, "items": items })));
    let worst: Vec<_> = (0..4_000).map(|n| format!("abababababababababab{n}")).collect();
    let began = Instant::now();
    assert_eq!(faults(&schema, json!({ "a": worst })).len(), MAX_FAULTS);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// Every name is unknown, and near to many.
#[test]
fn the_nearest_name_is_looked_for_in_time() {
    let long = |start: &str, n: usize| format!("{start}{n:0>55}");
    let known: Map<_, _> = (0..900).map(|n| (long("known", n), json!({}))).collect();
    let schema = read(json!({ "type": "object", "properties": known }));
    let unknown: Map<_, _> = (0..4_000).map(|n| (long("knuwn", n), json!(1))).collect();
    let began = Instant::now();
    assert_eq!(faults(&schema, Value::Object(unknown)).len(), MAX_FAULTS);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = prop_oneof!["[a-c]{1,2}", ".{0,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Something that looks like a schema, and is one often enough.
fn any_schema() -> impl Strategy<Value = Value> {
    let words = || {
        let known = [
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "const",
            "minimum",
            "maxLength",
            "pattern",
            "format",
            "additionalProperties",
            "anyOf",
            "allOf",
            "oneOf",
            "not",
            "if",
            "then",
            "$ref",
            "$defs",
            "x-immutable",
            "default",
            "prefixItems",
            "contains",
            "patternProperties",
            "propertyNames",
            "dependentSchemas",
            "multipleOf",
            "minContains",
            "uniqueItems",
        ];
        prop::sample::select(known.to_vec()).prop_map(str::to_owned)
    };
    let types = ["string", "integer", "number", "object", "array", "boolean"];
    let leaf = prop_oneof![
        4 => prop::sample::select(types.to_vec()).prop_map(|kind| json!({ "type": kind })),
        1 => Just(json!({ "$ref": "#/$defs/a" })),
        1 => Just(json!({ "pattern": "^(a+)+$" })),
        1 => any_json(),
    ];
    let part = leaf.prop_recursive(4, 24, 4, move |inner| {
        let fields = prop::collection::btree_map("[a-c]", inner.clone(), 0..3)
            .prop_map(|map| json!({ "type": "object", "properties": map }));
        let list = inner.clone().prop_map(|items| json!({ "type": "array", "items": items }));
        let wild =
            prop::collection::btree_map(words(), prop_oneof![inner.clone(), any_json()], 0..3);
        let either = prop::collection::vec(inner, 1..3).prop_map(|parts| json!({ "anyOf": parts }));
        prop_oneof![
            3 => fields,
            2 => list,
            2 => either,
            1 => wild.prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let part = part.boxed();
    let named = prop::collection::btree_map("[a-c]", part.clone(), 0..3);
    (named, part).prop_map(|(properties, definition)| {
        json!({ "type": "object", "properties": properties, "$defs": { "a": definition } })
    })
}

proptest! {
    /// Neither a schema nor values make it panic or take long, and what is accepted is
    /// accepted again, unchanged.
    #[test]
    fn no_schema_and_no_values_do_harm(schema in any_schema(), given in any_json(), list in any_json()) {
        let began = Instant::now();
        let _ = ParameterSchema::read(json!({ "parameters": list }));
        let _ = ParameterSchema::read(given.clone());
        let given: BTreeMap<String, Value> = serde_json::from_value(given).unwrap_or_default();
        let Ok(schema) = ParameterSchema::read(schema) else { return Ok(()) };
        let stored: ParameterSchema = serde_json::from_value(json!(schema)).unwrap();
        schema.described();
        match stored.validate(given) {
            Ok(kept) => {
                prop_assert_eq!(schema.validate(kept.as_map().clone()).unwrap(), kept.clone());
                prop_assert!(schema.immutable_changes(&kept, &kept).is_empty());
                let text = serde_json::to_string(&kept).unwrap();
                prop_assert_eq!(serde_json::from_str::<ParameterValues>(&text).unwrap(), kept);
            }
            Err(refusal) => {
                for fault in refusal.faults() {
                    prop_assert!(fault.field.as_ref().unwrap().starts_with("parameters"));
                }
            }
        }
        prop_assert!(began.elapsed() < Duration::from_secs(10));
    }

    /// The short form refuses what it always refused. JSON Schema takes 1.0 for the integer 1.
    #[test]
    fn the_short_form_and_its_translation_agree(
        kinds in prop::collection::vec((0_usize..3, any::<bool>()), 0..4),
        given in prop::collection::btree_map("[a-e]", any_json(), 0..5),
    ) {
        let kind = |n: usize| [ParameterType::Boolean, ParameterType::Integer, ParameterType::String][n];
        let named = kinds.iter().zip(["a", "b", "c", "d"]);
        let parameters: Vec<_> = named.map(|((n, required), name)| parameter(name, kind(*n), *required, None)).collect();
        let schema = ParameterSchema::new(parameters.clone()).unwrap();
        let fits = |name: &String, value: &Value| {
            let value = match value {
                Value::Number(number) => values::canonical(number).map_or(Value::Null, Value::Number),
                other => other.clone(),
            };
            let text = value.as_str().unwrap_or_default();
            !text.contains('\0') && parameters.iter().any(|p| p.name == *name && p.kind.accepts(&value))
        };
        let expected = given.iter().all(|(name, value)| fits(name, value))
            && parameters.iter().all(|p| !p.required || given.contains_key(&p.name));
        prop_assert_eq!(schema.validate(given).is_ok(), expected);
    }
}
