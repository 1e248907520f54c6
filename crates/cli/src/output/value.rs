//! JSON values as lines for people.

use serde_json::{Map, Value};

use super::time;
use crate::terminal::clean;

/// What was observed, with its time, as lines; empty if there is nothing.
pub(crate) fn observed(value: &Value, since: Option<&str>, is_stale: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Value::Object(fields) = value {
        let shown = fields.iter().filter(|(name, _)| *name != "since");
        shown.for_each(|(name, value)| field(name, value, 0, &mut lines));
    }
    if lines.is_empty() {
        return lines;
    }
    let since = since.map(time);
    let when = match (since, is_stale) {
        (Some(since), false) => format!("at the last check, the same since {since}"),
        (None, false) => "at the last check".to_owned(),
        (Some(since), true) => {
            format!("since {since}, and not checked any more: it may be out of date")
        }
        (None, true) => "before, and not checked any more: it may be out of date".to_owned(),
    };
    lines.insert(0, when);
    lines
}

/// The fields of a value as lines.
pub(crate) fn lines_of(value: &Value) -> String {
    let mut lines = Vec::new();
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| field(name, value, 0, &mut lines));
        }
        Value::Null => {}
        value => lines.push(plain(value)),
    }
    lines.join("\n")
}

/// A name with its value; the fields of a value that has some go below it.
pub(crate) fn field(name: &str, value: &Value, depth: usize, lines: &mut Vec<String>) {
    let (name, indent) = (clean(&name.replace('_', " ")), "  ".repeat(depth));
    match value {
        Value::Null => {}
        Value::Object(fields) if fields.is_empty() => {}
        Value::Object(fields) if is_state(fields) => {
            let flags = fields.iter().filter(|(_, value)| **value == Value::Bool(true));
            let state = fields.get("state").map(plain).into_iter();
            let words: Vec<_> = state.chain(flags.map(|(flag, _)| clean(flag))).collect();
            lines.push(format!("{indent}{name}: {}", words.join(", ")));
        }
        Value::Object(fields) => {
            lines.push(format!("{indent}{name}:"));
            fields.iter().for_each(|(name, value)| field(name, value, depth + 1, lines));
        }
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (number, item) in items.iter().enumerate() {
                field(&format!("{name} {}", number + 1), item, depth, lines);
            }
        }
        value => lines.push(format!("{indent}{name}: {}", plain(value))),
    }
}

/// A state with its flags, such as `present, ready`.
fn is_state(fields: &Map<String, Value>) -> bool {
    let flag = |(name, value): (&String, &Value)| name == "state" || value.is_boolean();
    fields.get("state").is_some_and(Value::is_string) && fields.iter().all(flag)
}

/// A text without its quotes, a time to the second, several with commas.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.parse::<slipway_core::Timestamp>().is_ok() => time(text),
        Value::String(text) => clean(text),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        value => clean(&value.to_string()),
    }
}
