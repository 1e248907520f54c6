//! Parameters on the command line: typed by the schema of the blueprint version, nested by
//! dots, or from a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use slipway_core::catalog::parameters::{Described, ParameterSchema, View};
use slipway_wire::catalog::BlueprintVersion;

use super::blueprint::newest;
use crate::client::{Client, Listing};
use crate::error::Error;

/// The schema of a version of a blueprint, the newest if none is named. Without an answer
/// there is none: values are guessed then, and the request is refused and says why.
pub(crate) async fn schema_of(
    client: &Client,
    blueprint: &str,
    version: Option<&str>,
) -> Option<ParameterSchema> {
    let path = ["blueprints", blueprint, "versions"];
    let found = match version {
        Some(version) => {
            let path = [path.as_slice(), &[version]].concat();
            client.get(&path).await.map(|version| vec![version])
        }
        None => client.list(&path, Listing::default()).await.map(|all| all.items),
    };
    newest(&found.unwrap_or_default()).and_then(schema)
}

/// The schema of a version, if this client can read it.
pub(crate) fn schema(version: &BlueprintVersion) -> Option<ParameterSchema> {
    serde_json::from_value(Value::Object(version.parameter_schema.0.clone())).ok()
}

/// The values of `NAME=VALUE`, each with the type that the schema says, over those of a file.
pub(crate) fn typed_values(
    schema: Option<&ParameterSchema>,
    given: BTreeMap<String, String>,
    file: Map<String, Value>,
) -> Result<BTreeMap<String, Value>, Error> {
    let types = |name: &str| {
        let mut view = Some(schema?.view());
        for field in name.split('.') {
            view = view.and_then(|view: View<'_>| view.field(field));
        }
        let types = view?.types();
        Some(types.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let typed = |(name, text): (String, String)| {
        let value = typed(types(&name).as_deref(), text);
        (name, value)
    };
    nested(given.into_iter().map(typed), file)
}

/// Puts every value where its dots lead. A value replaces that of the file.
pub(crate) fn nested(
    given: impl IntoIterator<Item = (String, Value)>,
    file: Map<String, Value>,
) -> Result<BTreeMap<String, Value>, Error> {
    let mut root = Value::Object(file);
    for (name, value) in given {
        let mut place = &mut root;
        for field in name.split('.') {
            let Value::Object(fields) = place else {
                let message = format!(
                    "--parameter `{name}` names a field of what is given as a whole; give either"
                );
                return Err(Error::Usage(message));
            };
            if field.is_empty() {
                return Err(Error::Usage(format!("--parameter `{name}` has an empty name")));
            }
            let empty = || Value::Object(Map::new());
            place = fields.entry(field.to_owned()).or_insert_with(empty);
        }
        *place = value;
    }
    let Value::Object(root) = root else { return Ok(BTreeMap::new()) };
    Ok(root.into_iter().collect())
}

/// A value of one of these types. A text is taken as it is typed, or as JSON if it is one
/// JSON text. What cannot be of the type stays text, and the server says so. Without a type
/// everything that is JSON is taken as such, but for null, and the rest as text.
pub(crate) fn typed(types: Option<&[String]>, text: String) -> Value {
    let json = serde_json::from_str::<Value>(&text).unwrap_or_default();
    let kind = match &json {
        Value::Null => return Value::String(text),
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(number) if number.is_f64() => "number",
        // The server takes no larger ones.
        Value::Number(_) => return Value::String(text),
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = match types {
        None | Some([]) => kind != "string",
        Some(types) => {
            let is = |kind: &str| types.iter().any(|one| one == kind);
            is(kind) || kind == "integer" && is("number")
        }
    };
    if fits { json } else { Value::String(text) }
}

/// The values of a file, YAML or JSON.
pub(crate) fn from_file(path: Option<&Path>) -> Result<Map<String, Value>, Error> {
    /// As large as a request may be; what a few aliases make of it is bounded by the reader.
    const MAX_FILE: u64 = 1_024 * 1_024;
    let Some(path) = path else { return Ok(Map::new()) };
    let shown = path.display();
    let wrong = |problem: String| Error::Usage(format!("--params-file `{shown}` {problem}"));
    let size =
        std::fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if size.len() > MAX_FILE {
        return Err(wrong(format!("has {} bytes; the most are {MAX_FILE}", size.len())));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match serde_yaml_ng::from_str(&text) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(wrong("is not a map of parameters".to_owned())),
        Err(error) => Err(wrong(format!("is not YAML or JSON: {error}"))),
    }
}

/// One line per parameter: `disk.size: integer (required, immutable), at least 10`.
pub(crate) fn lines(schema: &ParameterSchema) -> String {
    let line = |row: Described| {
        let marks = [(row.required, "required"), (row.immutable, "immutable")];
        let marks: Vec<_> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        let marks =
            if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
        let default = row.default.map(|default| format!(" = {default}")).unwrap_or_default();
        let limits =
            if row.limits.is_empty() { String::new() } else { format!(", {}", row.limits) };
        format!("{}: {}{default}{marks}{limits}", row.name, row.kind)
    };
    schema.described().into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_value_has_the_type_of_its_parameter() {
        for (kind, text, value) in [
            (Some("string"), "22", json!("22")),
            (Some("string"), "\"22\"", json!("22")),
            (Some("string"), "\"\\\"22\\\"\"", json!("\"22\"")),
            (Some("string"), "true", json!("true")),
            (Some("string"), "{\"a\":1}", json!("{\"a\":1}")),
            (Some("string"), "", json!("")),
            (Some("integer"), "-4", json!(-4)),
            (Some("integer"), "four", json!("four")),
            (Some("integer"), "99999999999999999999", json!("99999999999999999999")),
            (Some("number"), "1.5", json!(1.5)),
            (Some("number"), "2", json!(2)),
            (Some("boolean"), "true", json!(true)),
            (Some("boolean"), "1", json!("1")),
            (Some("array"), "[\"a\",\"b\"]", json!(["a", "b"])),
            (None, "4", json!(4)),
            (None, "true", json!(true)),
            (None, "1.5", json!(1.5)),
            (None, "[1]", json!([1])),
            (None, "\"a\"", json!("\"a\"")),
            (None, "007", json!("007")),
            (None, "null", json!("null")),
        ] {
            let types = kind.map(|kind| vec![kind.to_owned()]);
            assert_eq!(typed(types.as_deref(), text.to_owned()), value, "{kind:?} {text}");
        }
    }

    #[test]
    fn dots_lead_into_objects_and_flags_win_over_the_file() {
        let schema = json!({ "type": "object", "properties": {
            "disk": { "type": "object", "properties": { "name": { "type": "string" }, "size": { "type": "integer" } } },
            "zones": { "type": "array" },
        } });
        let schema: ParameterSchema = serde_json::from_value(schema).unwrap();
        let file: Map<String, Value> =
            serde_json::from_value(json!({ "disk": { "size": 1, "kind": "ssd" }, "a": 1 }))
                .unwrap();
        let typed = flags(&[("disk.size", "20"), ("disk.name", "20"), ("zones", "[\"a\"]")]);
        let values = typed_values(Some(&schema), typed, file).unwrap();
        let expected = json!({
            "a": 1, "disk": { "size": 20, "kind": "ssd", "name": "20" }, "zones": ["a"],
        });
        assert_eq!(json!(values), expected);
        for wrong in [&[("a", "1"), ("a.b", "2")][..], &[("a..b", "1")], &[(".a", "1")]] {
            assert!(typed_values(None, flags(wrong), Map::new()).is_err(), "{wrong:?}");
        }
    }
}
