//! `-o jsonpath=…`: chosen fields, in the templates that users of kubectl type. Text stands
//! for itself, `{…}` has a path, a `"text"`, or `range PATH` up to `end`. Pure.
//!
//! The paths are those of RFC 9535 without their `$`. A list, which `-o json` shows as an
//! array, is also found below `.items`.

use jsonpath_rust::JsonPath as _;
use jsonpath_rust::parser::parse_json_path;
use serde_json::Value;

use crate::terminal::clean;

/// Deeper than anybody nests ranges.
const DEEPEST: usize = 8;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Values(Path),
    Range(Path, Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Path {
    /// With `$`, as the library takes it.
    query: String,
    /// Begins at the document, also within a range.
    is_absolute: bool,
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        // kubectl takes a path without its braces, too.
        let bare = !text.contains('{') && text.starts_with(['.', '[', '$', '@']);
        let whole = if bare { format!("{{{text}}}") } else { text.to_owned() };
        let mut rest = whole.as_str();
        let (pieces, ended) = pieces(&mut rest, 0)?;
        match (ended, pieces.is_empty()) {
            (true, _) => Err("`{end}` has no `{range …}` before it".to_owned()),
            (_, true) => Err("the template is empty; such as {.items[*].handle}".to_owned()),
            _ => Ok(Self { pieces }),
        }
    }

    pub(crate) fn apply(&self, document: &Value) -> String {
        let wrapped = match document {
            Value::Array(_) => serde_json::json!({ "items": document }),
            _ => Value::Null,
        };
        let root = Root { document, wrapped: &wrapped };
        let mut shown = String::new();
        write(&self.pieces, root, None, &mut shown);
        shown
    }
}

/// Reads up to the end of the text, or up to an `{end}`; answers whether there was one.
fn pieces(rest: &mut &str, depth: usize) -> Result<(Vec<Piece>, bool), String> {
    if depth > DEEPEST {
        return Err(format!("more than {DEEPEST} ranges are in each other"));
    }
    let mut pieces = Vec::new();
    while let Some(open) = rest.find('{') {
        if open > 0 {
            pieces.push(Piece::Text(rest[..open].to_owned()));
        }
        let after = &rest[open + 1..];
        let close = closing(after).ok_or("a `{` has no `}`")?;
        let inside = after[..close].trim();
        *rest = &after[close + 1..];
        if inside == "end" {
            return Ok((pieces, true));
        }
        if let Some(text) = inside.strip_prefix('"') {
            let text = text.strip_suffix('"').ok_or("a `\"` is missing at the end of a text")?;
            pieces.push(Piece::Text(unescaped(text)));
        } else if let Some(path) = inside.strip_prefix("range ") {
            let path = Path::parse(path.trim())?;
            let (inner, ended) = self::pieces(rest, depth + 1)?;
            if !ended {
                return Err("`{range …}` has no `{end}`".to_owned());
            }
            pieces.push(Piece::Range(path, inner));
        } else {
            pieces.push(Piece::Values(Path::parse(inside)?));
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text((*rest).to_owned()));
        *rest = "";
    }
    Ok((pieces, false))
}

/// The `}` that is not within quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    text.char_indices().find_map(|(index, c)| {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '}') => return Some(index),
            _ => {}
        }
        None
    })
}

fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"")
}

impl Path {
    fn parse(text: &str) -> Result<Self, String> {
        let is_absolute = text.starts_with('$');
        let steps = text.strip_prefix(['$', '@']).unwrap_or(text);
        let steps = if steps == "." { "" } else { steps };
        let query = format!("${steps}");
        let begins = steps.is_empty() || steps.starts_with(['.', '[']);
        if begins && parse_json_path(&query).is_ok() {
            return Ok(Self { query, is_absolute });
        }
        Err(format!(
            "`{{{text}}}` is not understood; a path has .field, ['a field'], [0], [0:2], [*], .. \
             and [?(@.field==\"value\")], and beside paths there are \"text\", range and end"
        ))
    }

    fn values<'a>(&self, root: Root<'a>, current: Option<&'a Value>) -> Vec<&'a Value> {
        let found = match current.filter(|_| !self.is_absolute) {
            Some(current) => current,
            None if self.query.starts_with("$.items") && root.document.is_array() => root.wrapped,
            None => root.document,
        };
        // It was parsed before; a path that finds nothing shows nothing.
        found.query(&self.query).unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
struct Root<'a> {
    document: &'a Value,
    wrapped: &'a Value,
}

fn write<'a>(pieces: &[Piece], root: Root<'a>, current: Option<&'a Value>, shown: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => shown.push_str(text),
            Piece::Values(path) => {
                let values: Vec<_> = path.values(root, current).into_iter().map(plain).collect();
                shown.push_str(&values.join(" "));
            }
            Piece::Range(path, inner) => {
                for value in path.values(root, current) {
                    write(inner, root, Some(value), shown);
                }
            }
        }
    }
}

/// A text without its quotes, anything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_show_what_users_of_kubectl_expect() {
        let list = json!([
            { "handle": "web-1", "phase": "Ready", "labels": { "a.b/c": "x" }, "attempt": { "number": 1 } },
            { "handle": "web-2", "phase": "Failed", "labels": {}, "attempt": { "number": 2 } },
        ]);
        for (template, expected) in [
            ("{.items[*].handle}", "web-1 web-2"),
            ("{[*].handle}", "web-1 web-2"),
            ("{$.items[*].handle}", "web-1 web-2"),
            (".items[*].handle", "web-1 web-2"),
            ("{.items[0].handle} is {.items[0].phase}", "web-1 is Ready"),
            ("{.items[-1].handle}", "web-2"),
            ("{.items[?(@.phase==\"Failed\")].handle}", "web-2"),
            (
                "{range .items[*]}{.handle}{\"\\t\"}{.attempt.number}{\"\\n\"}{end}",
                "web-1\t1\nweb-2\t2\n",
            ),
            ("{range .items[*]}{@.labels['a.b/c']};{end}", "x;;"),
            ("{..number}", "1 2"),
            ("{.items[0].attempt}", "{\"number\":1}"),
            ("{.items[*].none}", ""),
            ("{\"}\"}", "}"),
        ] {
            assert_eq!(Template::parse(template).unwrap().apply(&list), expected, "{template}");
        }
        let one = Template::parse("{.handle}").unwrap();
        assert_eq!(one.apply(&list[0]), "web-1");
        assert_eq!(one.apply(&json!({ "handle": "a\u{1b}[2J" })), "a [2J");
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (template, named) in [
            ("", "empty"),
            ("{.a", "`{` has no `}`"),
            ("{.a[}", "`{.a[}`"),
            ("{handle}", "`{handle}`"),
            ("{.a | length}", "`{.a | length}`"),
            ("{range .a}{.b}", "has no `{end}`"),
            ("{end}", "has no `{range"),
            ("{\"a}", "`{` has no `}`"),
        ] {
            let problem = Template::parse(template).unwrap_err();
            assert!(problem.contains(named), "{template}: {problem}");
        }
        let nested = "{range .a}".repeat(2_000);
        assert!(Template::parse(&nested).unwrap_err().contains("ranges"));
    }
}
