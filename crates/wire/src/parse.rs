//! Reads a JSON document into a type and names everything that does not fit, where
//! serde stops at the first fault. After a fault the value in question is replaced by
//! one that fits, and the document is read again.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::{Path, Segment};

/// Something in a document that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The path of the field, such as `parameters[0].type`; none for the whole document.
    pub field: Option<String>,
    pub problem: String,
    /// Line and column; only of the first fault.
    pub position: Option<(usize, usize)>,
}

/// The most times that a document is read. It bounds the work on a hostile one.
const MOST_READS: usize = 32;

/// The document, or what does not fit; at least one fault.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Vec<Fault>> {
    match parse_mended(bytes) {
        (Some(parsed), faults) if faults.is_empty() => Ok(parsed),
        (_, faults) => Err(faults),
    }
}

/// The document with another value in place of each that does not fit, and those faults. So the
/// rest of it can be checked, too. `None` if it cannot be read at all.
pub fn parse_mended<T: DeserializeOwned>(bytes: &[u8]) -> (Option<T>, Vec<Fault>) {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let error = match serde_path_to_error::deserialize(&mut deserializer) {
        Ok(parsed) => match deserializer.end() {
            Ok(()) => return (Some(parsed), Vec::new()),
            Err(error) => return (None, vec![fault(None, &error)]),
        },
        Err(error) => error,
    };
    let mut faults = vec![fault(Some(error.path()), error.inner())];
    // Without valid syntax there is no further document to read.
    if let Ok(mut document) = serde_json::from_slice(bytes) {
        for _ in 0..MOST_READS {
            let error = match serde_path_to_error::deserialize(&document) {
                Ok(mended) => return (Some(mended), faults),
                Err(error) => error,
            };
            let found = Fault { position: None, ..fault(Some(error.path()), error.inner()) };
            if !mend(&mut document, error.path(), &error.inner().to_string()) {
                break;
            }
            if faults.iter().all(|known| known.field != found.field) {
                faults.push(found);
            }
        }
    }
    (None, faults)
}

fn fault(path: Option<&Path>, error: &serde_json::Error) -> Fault {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    // serde_json appends the position to its text; report it separately.
    let place = format!(" at line {line} column {column}");
    let problem = text.strip_suffix(&place).unwrap_or(&text);
    let problem: String = problem.chars().filter(|c| !c.is_control()).take(400).collect();
    // `?` is where the document ends or is no JSON.
    let path = path.map(ToString::to_string).unwrap_or_default();
    let path = path.trim_end_matches(['?', '.']).to_owned();
    let field = match (path.as_str(), named(&problem)) {
        ("", name) => name,
        (path, Some(name)) if path != name && !path.ends_with(&format!(".{name}")) => {
            Some(format!("{path}.{name}"))
        }
        _ => Some(path),
    };
    Fault { field, problem, position: Some((line, column)) }
}

/// serde names an unknown, missing or repeated field only in its text.
fn named(problem: &str) -> Option<String> {
    let rest = ["unknown field `", "missing field `", "duplicate field `"]
        .iter()
        .find_map(|prefix| problem.strip_prefix(prefix))?;
    rest.split_once('`').map(|(name, _)| name.chars().take(128).collect())
}

/// Replaces what does not fit; false if that cannot be done.
fn mend(document: &mut Value, path: &Path, problem: &str) -> bool {
    let mut place = document;
    let mut segments: Vec<_> = path.iter().collect();
    let name = named(problem);
    // The path of an unknown or missing field ends at its object, or at itself.
    if let (Some(name), Some(Segment::Map { key })) = (&name, segments.last())
        && name == key
    {
        segments.pop();
    }
    for segment in segments {
        let inner = match segment {
            Segment::Map { key } => place.get_mut(key),
            Segment::Seq { index } => place.get_mut(index),
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        let Some(inner) = inner else { return false };
        place = inner;
    }
    match name {
        Some(name) if problem.starts_with("missing") => {
            let Some(object) = place.as_object_mut() else { return false };
            object.insert(name, Value::Null);
        }
        Some(name) => {
            let Some(object) = place.as_object_mut() else { return false };
            return object.remove(&name).is_some();
        }
        None => match next(place, problem) {
            Some(next) => *place = next,
            None => return false,
        },
    }
    true
}

/// Another value to try in place of this one.
fn next(value: &Value, problem: &str) -> Option<Value> {
    if let Some((_, known)) = problem.split_once("unknown variant `") {
        // The set follows: "expected one of `a`, `b`" or "expected `a`".
        let first = known.split_once(", expected ")?.1.split('`').nth(1)?;
        return Some(json!(first));
    }
    let candidates = [json!(""), json!(0), json!(false), json!([]), json!({})];
    let tried = candidates.iter().position(|candidate| candidate == value);
    let first = if value.is_null() { 0 } else { tried.map_or(0, |tried| tried + 1) };
    candidates.get(first).cloned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Document {
        name: String,
        count: u32,
        #[serde(default)]
        labels: BTreeMap<String, String>,
        parts: Vec<Part>,
        #[serde(default)]
        sure: Option<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Part {
        kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Small,
        Large,
    }

    fn fields(document: &Value) -> Vec<String> {
        let faults = parse::<Document>(document.to_string().as_bytes()).unwrap_err();
        faults.into_iter().map(|fault| fault.field.unwrap_or_default()).collect()
    }

    #[test]
    fn everything_that_does_not_fit_is_named_once() {
        let wrong = json!({
            "name": 7, "colour": "red", "labels": { "a": 1, "b": true },
            "parts": [{ "kind": "small" }, { "kind": "huge", "x": 1 }, {}], "sure": "yes",
        });
        let mut found = fields(&wrong);
        found.sort();
        let expected = [
            "colour",
            "count",
            "labels.a",
            "labels.b",
            "name",
            "parts[1].kind",
            "parts[1].x",
            "parts[2].kind",
            "sure",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_fits_is_read_beside_what_does_not() {
        let wrong = json!({ "name": "x", "count": "many", "parts": [{ "kind": "large" }] });
        let (mended, faults) = parse_mended::<Document>(wrong.to_string().as_bytes());
        let mended = mended.unwrap();
        assert_eq!((mended.name.as_str(), mended.parts.len(), faults.len()), ("x", 1, 1));
        assert!(parse_mended::<Document>(b"{").0.is_none());
    }

    #[test]
    fn every_missing_field_is_named() {
        assert_eq!(fields(&json!({})), ["name", "count", "parts"]);
    }

    #[test]
    fn the_first_fault_has_its_position_and_wrong_syntax_is_one_fault() {
        let faults = parse::<Document>(b"{\n  \"name\": 7, \"x\": 1}").unwrap_err();
        assert_eq!(faults[0].position, Some((2, 11)));
        let faults = parse::<Document>(b"{\n  \"name\": ,").unwrap_err();
        assert_eq!((faults.len(), faults[0].position), (1, Some((2, 11))));
        let faults = parse::<Document>(b"{").unwrap_err();
        assert_eq!((faults.len(), &faults[0].field), (1, &None));
        let good = json!({ "name": "a", "count": 1, "parts": [] });
        assert!(parse::<Document>(good.to_string().as_bytes()).is_ok());
        assert!(parse::<Document>(format!("{good} x").as_bytes()).is_err());
    }
}
