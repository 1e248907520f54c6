//! Checks values against a schema and says in plain sentences what does not fit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, JsonType, PatternOptions, Validator};
use serde_json::Value;

use super::path::{Path, Segment};
use super::shown;
use super::view::{View, listed, short};
use crate::nearest::nearest;

/// The memory that one pattern may take when it is compiled, and again when it is matched.
const PATTERN_MEMORY: usize = 256 * 1_024;
/// Compiled schemas that are kept: every pass over a resource checks its values again. Few,
/// since the patterns of one take up to 8 MiB.
const CACHED: usize = 32;
/// Among more names the nearest is not looked for: each of the faults is compared with each.
const MAX_COMPARED: usize = 100;
/// The most names that an error text lists.
const MAX_LISTED: usize = 32;

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) path: Path,
    /// A value that is missing; named after all others.
    pub(super) missing: bool,
    problem: String,
    /// Where the schema lists the names that are known, if this is a name that is not. The
    /// nearest is looked for when it is said, since only few of many faults are.
    listed: Option<String>,
}

impl Fault {
    pub(super) fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: path.clone(), missing: false, problem: problem.into(), listed: None }
    }

    /// What is wrong, to follow the name of the value.
    pub(super) fn said(&self, schema: &Value) -> String {
        match &self.listed {
            None => self.problem.clone(),
            Some(pointer) => {
                let around = schema.pointer(pointer).unwrap_or(schema);
                unknown(&View::of(schema, around), &self.path)
            }
        }
    }
}

/// Compiles a schema. Patterns run in linear time, and nothing is resolved outside of it.
pub(super) fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let patterns =
        PatternOptions::regex().size_limit(PATTERN_MEMORY).dfa_size_limit(PATTERN_MEMORY);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(patterns)
        .should_validate_formats(true)
        .offline()
        .build(schema)
}

/// The compiled schema, kept for the next time.
pub(super) fn compiled(schema: &Arc<Value>) -> Result<Arc<Validator>, String> {
    static CACHE: OnceLock<Mutex<HashMap<Arc<Value>, Arc<Validator>>>> = OnceLock::new();
    let cache = CACHE.get_or_init(Mutex::default);
    if let Some(known) = cache.lock().unwrap_or_else(PoisonError::into_inner).get(schema) {
        return Ok(Arc::clone(known));
    }
    let validator = Arc::new(compile(schema).map_err(|error| sentence(schema, &error))?);
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= CACHED {
        cache.clear();
    }
    cache.insert(Arc::clone(schema), Arc::clone(&validator));
    Ok(validator)
}

/// What does not fit, in no particular order; at most `most`.
pub(super) fn faults(
    schema: &Value,
    validator: &Validator,
    values: &Value,
    most: usize,
) -> Vec<Fault> {
    if validator.is_valid(values) {
        return Vec::new();
    }
    validator.iter_errors(values).flat_map(|error| of(schema, &error)).take(most).collect()
}

/// One fault, or one for each name that is not known.
fn of(schema: &Value, error: &ValidationError<'_>) -> Vec<Fault> {
    let path = path(error.instance_path());
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let listed = Some(parent(error.schema_path()).to_owned());
            let unknown = |name: &String| Fault {
                listed: listed.clone(),
                ..Fault::new(&path.name(name), String::new())
            };
            unexpected.iter().map(unknown).collect()
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let around = schema.pointer(parent(error.schema_path())).unwrap_or(schema);
            let field = View::of(schema, around).field(name);
            let kind = field.map(|field| field.kind()).filter(|kind| kind != "any");
            let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
            let problem = format!("is required{kind}");
            vec![Fault { missing: true, ..Fault::new(&path.name(name), problem) }]
        }
        _ => vec![Fault::new(&path, sentence(schema, error))],
    }
}

/// The part of the schema that has the keyword at this location.
fn parent(keyword: &Location) -> &str {
    keyword.as_str().rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn unknown(around: &View<'_>, path: &Path) -> String {
    let (path, name) = path.split();
    let properties = around.properties();
    let known: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let place =
        if path.is_root() { "to this blueprint".to_owned() } else { format!("in `{path}`") };
    if known.is_empty() {
        return format!("is not known {place}, which takes none");
    }
    let meant = nearest(name, known.iter().copied().filter(|_| known.len() <= MAX_COMPARED));
    let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
    let more = match known.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let known = known[..known.len().min(MAX_LISTED)].join(", ");
    format!("is not known {place}{meant}; it takes: {known}{more}")
}

pub(super) fn path(location: &Location) -> Path {
    let step = |segment: LocationSegment<'_>| match segment {
        LocationSegment::Property(name) => Segment::Name(name.into_owned()),
        LocationSegment::Index(index) => Segment::Index(index),
    };
    location.iter().map(step).collect()
}

/// What is wrong, to follow the name of the value. The value itself is not repeated.
pub(super) fn sentence(schema: &Value, error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Type { kind } => format!("must be of type {}", types(kind).join(" or ")),
        Kind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            format!("must be one of {}", listed(options))
        }
        Kind::Constant { expected_value } => format!("must be {}", short(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {}", counted(*limit, "field")),
        Kind::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "field")),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Contains => {
            "must have an item that fits `contains` of its schema, in the number that is asked for"
                .to_owned()
        }
        Kind::Pattern { pattern } => format!("must match the pattern `{}`", shown_pattern(pattern)),
        Kind::Format { format } => format!("must have the format {format}"),
        Kind::PropertyNames { error } => {
            let name = error.instance().as_str().map(shown).unwrap_or_default();
            format!("has a field `{name}`, whose name {}", sentence(schema, error))
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(schema, context),
        Kind::OneOfMultipleValid { .. } => {
            "must fit exactly one of the alternatives of its schema, and fits several".to_owned()
        }
        Kind::Not { .. } => "must not fit what its schema excludes".to_owned(),
        Kind::FalseSchema => "is not allowed here".to_owned(),
        Kind::Required { property } => format!("needs {property}"),
        Kind::AdditionalProperties { unexpected } => {
            let names: Vec<_> = unexpected.iter().map(|name| shown(name)).collect();
            format!("has fields that are not known: {}", names.join(", "))
        }
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "cannot be checked against its pattern; use a simpler text or pattern".to_owned()
        }
        Kind::Referencing(_) => "has a `$ref` that leads nowhere".to_owned(),
        Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Custom { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::UnevaluatedProperties { .. } => {
            format!("does not fit `{}` of its schema", error.kind().keyword())
        }
    }
}

fn types(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(several) => {
            several.iter().map(|one: JsonType| one.to_string()).collect()
        }
    }
}

/// The types of the alternatives if that is the difference between them; else what keeps
/// the value from the only one that has its type.
fn alternatives(schema: &Value, context: &[Vec<ValidationError<'static>>]) -> String {
    let of_type = |branch: &Vec<ValidationError<'static>>| match branch.as_slice() {
        [error] => match error.kind() {
            ValidationErrorKind::Type { kind } => {
                Some((error.instance_path().as_str().to_owned(), types(kind)))
            }
            _ => None,
        },
        _ => None,
    };
    let typed: Vec<_> = context.iter().filter_map(of_type).collect();
    let same_place = typed.windows(2).all(|pair| pair[0].0 == pair[1].0);
    if same_place && typed.len() == context.len() {
        let types: Vec<_> = typed.into_iter().flat_map(|(_, types)| types).collect();
        return format!("must be of type {}", types.join(" or "));
    }
    let fitting: Vec<_> = context.iter().filter(|branch| of_type(branch).is_none()).collect();
    match fitting.as_slice() {
        [branch] => match branch.as_slice() {
            [error] => sentence(schema, error),
            _ => format!("fits none of the {} alternatives of its schema", context.len()),
        },
        _ => format!("fits none of the {} alternatives of its schema", context.len()),
    }
}

fn counted(number: u64, unit: &str) -> String {
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

pub(super) fn shown_pattern(pattern: &str) -> String {
    let mut short: String = pattern.chars().filter(|c| !c.is_control()).take(128).collect();
    if short.len() < pattern.len() {
        short.push('…');
    }
    short
}
