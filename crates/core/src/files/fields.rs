//! What a document changes, and who owns which field.
//!
//! An object is a flat map from the path of a field to its value. A source owns the fields
//! that it wrote. A document sets the fields that it has. A field that its source wrote
//! before and no longer does goes back to its default, unless another source owns it too.
//! Everything else is left alone. A field that another source wrote with another value is a
//! conflict. Pure: the caller reads the object and the owners, and writes the result.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use crate::error::{ErrorKind, Refusal};
use crate::nodes::token::SecretHash;

/// The fields of an object by their paths.
pub type Fields = BTreeMap<String, Value>;

/// A longer value is remembered by its hash.
const MOST_REMEMBERED: usize = 512;

/// How the fields of a kind behave.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// What a field is if nobody says.
    pub defaults: Fields,
    /// Fields that the server fills if nobody says, and then keeps. In both lists a path that
    /// ends with a dot means all below it.
    pub computed: &'static [&'static str],
    /// Fields that stay as they were made.
    pub fixed: &'static [&'static str],
}

/// What a source wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    pub source: String,
    pub fields: Fields,
}

/// A field that becomes another; `None` is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub path: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// What applying a document does to an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The object afterwards.
    pub target: Fields,
    /// By path; empty if the object stays as it is.
    pub changes: Vec<Change>,
    /// What the source has written then, if that is new.
    pub owned: Option<Fields>,
    /// What other sources still own, where a field was taken from them.
    pub taken: Vec<Owner>,
}

/// What is remembered of a value.
pub fn written(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= MOST_REMEMBERED {
        return value.clone();
    }
    json!({ "sha256": HEXLOWER.encode(SecretHash::of(text.as_bytes()).as_bytes()) })
}

/// What a document makes of an object. `live` is `None` if there is none, `mine` what the
/// source wrote before, `force` takes fields from other sources.
pub fn plan(
    live: Option<&Fields>,
    wanted: &Fields,
    mine: Option<&Fields>,
    others: &[Owner],
    terms: &Terms,
    force: bool,
) -> Result<Outcome, Refusal> {
    let owned: Fields = wanted.iter().map(|(path, value)| (path.clone(), written(value))).collect();
    let mut taken: Vec<Owner> = Vec::new();
    let mut conflicts = Vec::new();
    for other in others {
        let differs = |path: &String, theirs: &Value| owned.get(path).is_some_and(|v| v != theirs);
        let lost: Vec<&String> = other
            .fields
            .iter()
            .filter(|(path, v)| differs(path, v))
            .map(|(path, _)| path)
            .collect();
        if force && !lost.is_empty() {
            let kept = other.fields.iter().filter(|(path, _)| !lost.contains(path));
            let fields = kept.map(|(path, value)| (path.clone(), value.clone())).collect();
            taken.push(Owner { source: other.source.clone(), fields });
        } else {
            conflicts.extend(lost.into_iter().map(|path| conflict(path, &other.source)));
        }
    }
    Refusal::all(conflicts)?;
    let mut target = live.cloned().unwrap_or_default();
    let released = mine.into_iter().flatten().map(|(path, _)| path).filter(|path| {
        !wanted.contains_key(*path)
            && !is_among(terms.computed, path)
            && !is_among(terms.fixed, path)
            && others.iter().all(|other| !other.fields.contains_key(*path))
    });
    for path in released {
        target.remove(path);
    }
    target.extend(wanted.clone());
    let changes = match live {
        Some(live) => changes(live, &target, terms),
        None => changes(&Fields::new(), &target, &Terms::default()),
    };
    if live.is_some() {
        let fixed = changes.iter().filter(|change| is_among(terms.fixed, &change.path));
        Refusal::all(fixed.map(immutable))?;
    }
    let owned = (mine != Some(&owned)).then_some(owned);
    Ok(Outcome { target, changes, owned, taken })
}

/// The differences between two states of an object, by path.
pub fn changes(before: &Fields, after: &Fields, terms: &Terms) -> Vec<Change> {
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let value = |of: &Fields, path: &String| of.get(path).or(terms.defaults.get(path)).cloned();
    let change = |path: &String| {
        let (before, after) = (value(before, path), value(after, path));
        (before != after).then(|| Change { path: path.clone(), before, after })
    };
    paths.into_iter().filter_map(change).collect()
}

fn is_among(paths: &[&str], path: &str) -> bool {
    paths.iter().any(|one| match one.ends_with('.') {
        true => path.starts_with(one),
        false => path == *one,
    })
}

fn conflict(path: &str, source: &str) -> Refusal {
    let message = format!(
        "`{path}` is owned by source `{source}`, which wrote another value; take it out of one of the two, or take it over with --force"
    );
    let details = json!({ "source": source, "field": path });
    Refusal::new(ErrorKind::FieldConflict, message).at(path).with(details)
}

fn immutable(change: &Change) -> Refusal {
    let path = &change.path;
    let shown =
        |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
    let message = format!(
        "`{path}` cannot change from {} to {}; undo the change in the file, or delete the object and declare it again",
        shown(&change.before),
        shown(&change.after)
    );
    Refusal::new(ErrorKind::FieldImmutable, message).at(path)
}

/// The labels and the spec of a document as fields. The values of the named maps are fields
/// of their own; every other value is one as a whole. Null is absent.
pub fn flatten<'a>(
    labels: impl IntoIterator<Item = (&'a String, &'a String)>,
    spec: &serde_json::Map<String, Value>,
    maps: &[&str],
) -> Fields {
    let labels = labels.into_iter().map(|(key, value)| (label_path(key), json!(value)));
    let mut fields: Fields = labels.collect();
    for (name, value) in spec {
        match value {
            Value::Null => {}
            Value::Object(entries) if maps.contains(&name.as_str()) => {
                let entries = entries.iter().filter(|(_, value)| !value.is_null());
                fields.extend(entries.map(|(key, v)| (format!("spec.{name}.{key}"), v.clone())));
            }
            value => {
                fields.insert(format!("spec.{name}"), value.clone());
            }
        }
    }
    fields
}

const LABELS: &str = "metadata.labels.";

pub fn label_path(key: &str) -> String {
    format!("{LABELS}{key}")
}

/// The labels among these fields.
pub fn labels(fields: &Fields) -> BTreeMap<String, String> {
    let texts = below(fields, LABELS);
    texts.filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned()))).collect()
}

/// The entries of a map of the spec.
pub fn entries(fields: &Fields, name: &str) -> serde_json::Map<String, Value> {
    let prefix = format!("spec.{name}.");
    below(fields, &prefix).map(|(key, value)| (key.to_owned(), value.clone())).collect()
}

fn below<'f>(fields: &'f Fields, prefix: &str) -> impl Iterator<Item = (&'f str, &'f Value)> {
    fields.iter().filter_map(move |(path, value)| Some((path.strip_prefix(prefix)?, value)))
}

/// The inverse of [`flatten`]: labels and spec.
pub fn nested(
    fields: &Fields,
    maps: &[&str],
) -> (BTreeMap<String, String>, serde_json::Map<String, Value>) {
    let mut spec = serde_json::Map::new();
    for (path, value) in below(fields, "spec.") {
        let map =
            maps.iter().find_map(|map| Some((map, path.strip_prefix(map)?.strip_prefix('.')?)));
        match map {
            Some((map, key)) => {
                let entries = spec.entry(*map).or_insert_with(|| json!({}));
                if let Value::Object(entries) = entries {
                    entries.insert(key.to_owned(), value.clone());
                }
            }
            None => {
                spec.insert(path.to_owned(), value.clone());
            }
        }
    }
    (labels(fields), spec)
}

#[cfg(test)]
mod tests;
