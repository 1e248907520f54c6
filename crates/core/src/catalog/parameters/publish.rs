//! Checks a JSON Schema before it is published: only keywords that are understood, and
//! bounds on everything that could make a later check expensive.
//!
//! The arithmetic: with every `$ref` followed a schema is a tree of at most
//! [`MAX_SUBSCHEMAS`], and values are bounded as well, so one check takes at most their
//! product. Recursion is refused, which no XRD could express either.

use serde_json::{Map, Value};

use super::check::{self, shown_pattern};
use super::path::Path;
use super::shown;
use super::values::canonical;
use super::view::{IMMUTABLE, View};
use crate::error::{ErrorKind, Refusal};
use crate::nearest::nearest;

/// The dialects that `$schema` may name; none is the same.
pub const DIALECTS: [&str; 2] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema#",
];
/// The largest schema, in bytes of JSON.
const MAX_BYTES: usize = 128 * 1_024;
/// Schemas within the schema, every `$ref` followed.
pub(super) const MAX_SUBSCHEMAS: usize = 1_000;
/// How deep schemas may be nested, every `$ref` followed.
const MAX_DEPTH: usize = 32;
/// Branches of `anyOf` and `oneOf` in all. For each that fails, the checker copies the value.
const MAX_ALTERNATIVES: usize = 64;
const MAX_OPTIONS: usize = 512;
const MAX_PATTERNS: usize = 32;
/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 512;
/// The longest name below the first level, in bytes.
const MAX_NAME: usize = 253;

/// Formats that are checked.
const FORMATS: [&str; 11] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uri-reference",
    "uuid",
];
/// Formats of OpenAPI that say something to people only.
const NOTED_FORMATS: [&str; 6] = ["byte", "double", "float", "int32", "int64", "password"];

/// Whatever has a plain value, which is checked by the meta-schema.
const PLAIN: [&str; 28] = [
    "$comment",
    "const",
    "default",
    "deprecated",
    "dependentRequired",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
];
/// Keywords with one schema, and whether it is about the same value.
const ONE: [(&str, bool); 8] = [
    ("additionalProperties", false),
    ("contains", false),
    ("else", true),
    ("if", true),
    ("items", false),
    ("not", true),
    ("propertyNames", false),
    ("then", true),
];
/// Keywords with a list of schemas.
const LIST: [(&str, bool); 4] =
    [("allOf", true), ("anyOf", true), ("oneOf", true), ("prefixItems", false)];
/// Keywords with a map of schemas.
const MAP: [(&str, bool); 3] =
    [("dependentSchemas", true), ("patternProperties", false), ("properties", false)];

/// Something that keeps a schema from being published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) field: String,
    pub(super) problem: String,
    kind: ErrorKind,
}

impl Fault {
    fn new(field: String, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into(), kind: ErrorKind::ParameterSchemaInvalid }
    }

    /// A document of another shape, as every body is refused.
    pub(super) fn shape(field: String, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into(), kind: ErrorKind::InvalidInput }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::new(fault.kind, format!("`{}` {}", fault.field, fault.problem)).at(fault.field)
    }
}

/// What is wrong with the name of a parameter.
pub(super) fn name_problem(name: &str) -> Option<&'static str> {
    /// An injection strategy writes there; a parameter would be overwritten by the token, or
    /// overwrite it.
    const INJECTION_SITES: [&str; 2] = ["helmValues", "providerSecret"];
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || name.len() > 63
        || !name.chars().all(plain)
    {
        return Some("must be 1 to 63 letters, digits, _ or -, starting with a letter");
    }
    INJECTION_SITES.contains(&name).then_some("has the name of an injection site; choose another")
}

/// The reason why a pattern cannot be used.
pub fn pattern_problem(pattern: &str) -> Option<String> {
    if pattern.len() > MAX_PATTERN {
        return Some(format!("is longer than {MAX_PATTERN} bytes"));
    }
    if check::compile(&serde_json::json!({ "pattern": pattern })).is_ok() {
        return None;
    }
    let look_around = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|part| pattern.contains(part));
    let bytes = pattern.as_bytes();
    let back = bytes.windows(2).any(|pair| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]));
    Some(match look_around || back {
        true => "has look-around or a back-reference; patterns run in linear time, without both"
            .to_owned(),
        false => "is not a pattern, or takes too much memory".to_owned(),
    })
}

struct Walk<'a> {
    root: &'a Value,
    faults: Vec<Fault>,
    subschemas: usize,
    alternatives: usize,
    patterns: usize,
    /// The definitions that are being followed.
    within: Vec<String>,
    /// A limit of the whole is exceeded; nothing more is read.
    over: bool,
}

/// Where a schema stands.
#[derive(Clone, Copy)]
struct Stand {
    depth: usize,
    /// Reached by names alone, so that a mark says which field it is about.
    by_name: bool,
    /// It is about a field, not about the same value as the schema around it.
    field: bool,
}

/// Brings numbers into the form that both databases keep, and checks everything; all faults.
pub(super) fn check(document: &mut Value) -> Vec<Fault> {
    let root = "parameter_schema".to_owned();
    let bytes = document.to_string().len();
    if bytes > MAX_BYTES {
        return vec![Fault::new(root, format!("has {bytes} bytes; the most are {MAX_BYTES}"))];
    }
    let mut faults = Vec::new();
    storable(document, &root, &mut faults);
    if !faults.is_empty() {
        return faults;
    }
    let mut walk = Walk {
        root: document,
        faults,
        subschemas: 0,
        alternatives: 0,
        patterns: 0,
        within: Vec::new(),
        over: false,
    };
    walk.root();
    let mut faults = walk.faults;
    if faults.is_empty() {
        faults = meta_faults(document);
    }
    if faults.is_empty() {
        faults = compiled_faults(document);
    }
    faults
}

/// Refuses what a database does not take, at any depth.
fn storable(value: &mut Value, at: &str, faults: &mut Vec<Fault>) {
    match value {
        Value::String(text) if text.contains('\0') => {
            faults.push(Fault::new(at.to_owned(), "contains U+0000"));
        }
        Value::Number(number) => match canonical(number) {
            Some(same) => *number = same,
            None => faults.push(Fault::new(at.to_owned(), "is a whole number outside of 64 bits")),
        },
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                storable(item, &format!("{at}[{index}]"), faults);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let at = format!("{at}.{}", shown(name));
                if name.contains('\0') {
                    faults.push(Fault::new(at.clone(), "contains U+0000"));
                }
                storable(field, &at, faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

impl Walk<'_> {
    fn fault(&mut self, at: &str, problem: impl Into<String>) {
        self.faults.push(Fault::new(at.to_owned(), problem));
    }

    /// The first limit of the whole that is exceeded ends the walk.
    fn limit(&mut self, at: &str, problem: String) {
        if !self.over {
            self.over = true;
            self.fault(at, problem);
        }
    }

    fn root(&mut self) {
        let at = "parameter_schema";
        let root = self.root;
        if root["type"] != "object" {
            self.fault(at, "must be a schema with `type: object`, or `{\"parameters\": […]}`");
            return;
        }
        if let Some(dialect) = root.get("$schema")
            && !DIALECTS.iter().any(|known| dialect == known)
        {
            self.fault(&format!("{at}.$schema"), format!("must be {}, or left out", DIALECTS[0]));
        }
        let named = root["properties"].as_object();
        for name in named.into_iter().flatten().map(|(name, _)| name) {
            if let Some(problem) = name_problem(name) {
                self.fault(&format!("{at}.properties.{}", shown(name)), problem);
            }
        }
        let closed = root.get("additionalProperties").is_none_or(|others| *others == false);
        let required = root["required"].as_array().filter(|_| closed);
        for (index, name) in required.into_iter().flatten().enumerate() {
            if name.as_str().is_some_and(|name| named.is_none_or(|named| !named.contains_key(name)))
            {
                self.fault(&format!("{at}.required[{index}]"), "is not among the properties");
            }
        }
        for (name, part) in root["$defs"].as_object().into_iter().flatten() {
            let at = format!("{at}.$defs.{}", shown(name));
            if name.is_empty()
                || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
            {
                self.fault(&at, "must have a name of letters, digits, dots, hyphens or _");
            }
            self.within.push(name.clone());
            self.schema(part, &at, Stand { depth: 1, by_name: true, field: true });
            self.within.pop();
        }
        self.schema(root, at, Stand { depth: 0, by_name: true, field: false });
    }

    fn schema(&mut self, schema: &Value, at: &str, stand: Stand) {
        self.subschemas += 1;
        if self.subschemas > MAX_SUBSCHEMAS {
            self.limit(
                "parameter_schema",
                format!("has more than {MAX_SUBSCHEMAS} schemas within it, every `$ref` followed"),
            );
        }
        if stand.depth > MAX_DEPTH {
            self.limit(
                at,
                format!("is nested deeper than {MAX_DEPTH} schemas, every `$ref` followed"),
            );
        }
        if self.over {
            return;
        }
        // `true` and `false` are schemas; other shapes are named by the meta-schema.
        let Value::Object(keywords) = schema else { return };
        for (keyword, value) in keywords {
            self.keyword(keyword, value, &format!("{at}.{}", shown(keyword)), stand);
        }
        if let (Some(required), Some(named)) =
            (keywords.get("required").and_then(Value::as_array), keywords.get("properties"))
        {
            for name in required.iter().filter_map(Value::as_str) {
                if named[name].get("default").is_some() {
                    let at = format!("{at}.properties.{}", shown(name));
                    self.fault(&at, "is required and has a default; remove one of the two");
                }
            }
        }
    }

    fn keyword(&mut self, keyword: &str, value: &Value, at: &str, stand: Stand) {
        let inner = |same: bool| Stand {
            depth: stand.depth + 1,
            by_name: stand.by_name
                && !same
                && ["properties", "additionalProperties"].contains(&keyword),
            field: !same,
        };
        match keyword {
            "pattern" => self.pattern(value.as_str().unwrap_or_default(), at),
            "format" => self.format(value, at),
            "enum" if value.as_array().is_some_and(|options| options.len() > MAX_OPTIONS) => {
                self.fault(at, format!("has more than {MAX_OPTIONS} values"));
            }
            "type" => {
                let null = |one: &Value| one == "null";
                if null(value) || value.as_array().is_some_and(|types| types.iter().any(null)) {
                    self.fault(at, "must not be null: a value that is not wanted is left out");
                }
            }
            "$ref" => self.reference(value, at, stand),
            IMMUTABLE => self.mark(value, at, stand),
            "$schema" | "$defs" if stand.depth == 0 => {}
            "$schema" | "$defs" => self.fault(at, "belongs to the top of the document"),
            _ if PLAIN.contains(&keyword) || keyword.starts_with("x-") => {}
            _ if let Some((_, same)) = ONE.iter().find(|(name, _)| *name == keyword) => {
                self.schema(value, at, inner(*same));
            }
            _ if let Some((_, same)) = LIST.iter().find(|(name, _)| *name == keyword) => {
                let parts = value.as_array().map(Vec::as_slice).unwrap_or_default();
                if ["anyOf", "oneOf"].contains(&keyword) {
                    self.alternatives += parts.len();
                    if self.alternatives > MAX_ALTERNATIVES {
                        self.limit("parameter_schema", format!("has more than {MAX_ALTERNATIVES} branches of `anyOf` and `oneOf` in all"));
                    }
                }
                for (index, part) in parts.iter().enumerate() {
                    self.schema(part, &format!("{at}[{index}]"), inner(*same));
                }
            }
            _ if let Some((_, same)) = MAP.iter().find(|(name, _)| *name == keyword) => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    let at = format!("{at}.{}", shown(name));
                    if keyword == "patternProperties" {
                        self.pattern(name, &at);
                    } else if name.is_empty()
                        || name.len() > MAX_NAME
                        || name.chars().any(char::is_control)
                    {
                        self.fault(&at, format!("must have a name of 1 to {MAX_NAME} bytes without control characters"));
                    }
                    self.schema(part, &at, inner(*same));
                }
            }
            _ => self.unknown(keyword, at),
        }
    }

    fn unknown(&mut self, keyword: &str, at: &str) {
        let others = ["$ref", "$defs", "$schema", IMMUTABLE];
        let pairs = ONE.iter().chain(&LIST).chain(&MAP).map(|(name, _)| *name);
        let known = pairs.chain(PLAIN).chain(others);
        let problem = match nearest(keyword, known) {
            Some(meant) => {
                format!("is not a keyword that is understood here (did you mean `{meant}`?)")
            }
            None => {
                "is not a keyword that is understood here; remove it, or name it x-…".to_owned()
            }
        };
        self.fault(at, problem);
    }

    fn pattern(&mut self, pattern: &str, at: &str) {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            self.limit(
                "parameter_schema",
                format!("has more than {MAX_PATTERNS} patterns, every `$ref` followed"),
            );
        } else if let Some(problem) = pattern_problem(pattern) {
            let problem = format!("`{}` {problem}", shown_pattern(pattern));
            self.fault(at, problem);
        }
    }

    fn format(&mut self, value: &Value, at: &str) {
        let Some(format) = value.as_str() else { return };
        if !is_known_format(format) {
            let problem = format!("is not known; formats are {}", FORMATS.join(", "));
            self.fault(at, problem);
        }
    }

    fn mark(&mut self, value: &Value, at: &str, stand: Stand) {
        if !value.is_boolean() {
            self.fault(at, "must be true or false");
        } else if *value == true && !(stand.by_name && stand.field) {
            let problem = "must be on a property; an array is immutable as a whole, and keywords that combine schemas mark nothing";
            self.fault(at, problem);
        }
    }

    fn reference(&mut self, value: &Value, at: &str, stand: Stand) {
        let name = value.as_str().and_then(|text| text.strip_prefix("#/$defs/"));
        let found = name.and_then(|name| Some((name, self.root["$defs"].get(name)?)));
        let Some((name, part)) = found else {
            let problem =
                "must lead to a definition of this document, as #/$defs/NAME; nothing else is read";
            return self.fault(at, problem);
        };
        if self.within.iter().any(|one| one == name) {
            return self.fault(at, "leads back to itself; a schema must not be recursive");
        }
        self.within.push(name.to_owned());
        let before = self.faults.len();
        self.schema(
            part,
            &format!("parameter_schema.$defs.{}", shown(name)),
            Stand { depth: stand.depth + 1, ..stand },
        );
        // Faults of a definition are named once, where it stands.
        let seen = self.faults[..before].to_vec();
        let mut number = 0;
        self.faults.retain(|fault| {
            number += 1;
            number <= before || !seen.contains(fault)
        });
        self.within.pop();
    }
}

pub fn is_known_format(format: &str) -> bool {
    FORMATS.contains(&format) || NOTED_FORMATS.contains(&format)
}

/// Keywords whose values are of the wrong shape.
fn meta_faults(document: &Value) -> Vec<Fault> {
    let meta = jsonschema::draft202012::meta::validator();
    let fault = |error: jsonschema::ValidationError<'_>| {
        let field = check::path(error.instance_path()).field("parameter_schema");
        Fault::new(field, check::sentence(&Value::Null, &error))
    };
    let mut faults: Vec<_> =
        meta.iter_errors(document).take(super::MAX_FAULTS).map(fault).collect();
    faults.sort_by(|one, other| one.field.cmp(&other.field));
    faults
}

/// A schema that cannot be compiled, and defaults that it does not accept.
fn compiled_faults(document: &Value) -> Vec<Fault> {
    let validator = match check::compile(document) {
        Ok(validator) => validator,
        Err(error) => {
            let field = check::path(error.instance_path()).field("parameter_schema");
            return vec![Fault::new(field, check::sentence(document, &error))];
        }
    };
    let (mut paths, path) = (Vec::new(), Path::default());
    let defaults = defaults(&View::of(document, document), &path, &mut paths);
    let wrong =
        check::faults(document, &validator, &Value::Object(defaults), 16 * super::MAX_FAULTS);
    let wrong = wrong.into_iter().filter_map(|fault| {
        let of = paths.iter().find(|path| fault.path.starts_with(path))?;
        let inner =
            if fault.path == *of { String::new() } else { format!("`{}` of it ", fault.path) };
        Some(Fault::new(
            of.field("parameter_schema"),
            format!("has a default that does not fit: {inner}{}", fault.said(document)),
        ))
    });
    let mut wrong: Vec<_> = wrong.collect();
    wrong.sort_by(|one, other| one.field.cmp(&other.field));
    wrong
}

/// All defaults of fields as one value, and where they are.
fn defaults(view: &View<'_>, path: &Path, paths: &mut Vec<Path>) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, field) in view.properties() {
        let path = path.name(name);
        let value = match field.get("default") {
            Some(default) => {
                paths.push(path);
                default.clone()
            }
            None => match defaults(&field, &path, paths) {
                below if below.is_empty() => continue,
                below => Value::Object(below),
            },
        };
        map.insert(name.to_owned(), value);
    }
    map
}
