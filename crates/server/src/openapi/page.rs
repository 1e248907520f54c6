//! The API description, for machines at `/openapi.json` and for people at
//! `/docs`: one page without scripts or external content.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::Json;
use axum::extract::Path;
use axum::response::{Html, Redirect};
use serde_json::Value;
use slipway_app::access::authorise::Terms;
use slipway_core::error::{ErrorKind, Refusal};

use super::document::document;
use super::query::query;
use super::texts::is_text;
use crate::error::{self, Rejection, clip};
use crate::router::TABLE;
use crate::routes::{Answer, Route};

static DOCUMENT: LazyLock<Value> = LazyLock::new(document);
static PAGE: LazyLock<String> = LazyLock::new(render);

pub(crate) async fn machines() -> Json<&'static Value> {
    Json(&DOCUMENT)
}

pub(crate) async fn people() -> Html<&'static str> {
    Html(&PAGE)
}

/// The address without a path, as somebody types it into a browser.
pub(crate) async fn home() -> Redirect {
    Redirect::temporary("/docs")
}

/// Redirects the `type` of a problem to its line of the page.
pub(crate) async fn problem(Path(code): Path<String>) -> Result<Redirect, Rejection> {
    let known = ErrorKind::ALL.iter().find(|kind| kind.code() == code);
    let kind = known.ok_or_else(|| {
        let shown = clip(&code);
        Refusal::new(ErrorKind::RouteNotFound, format!("there is no problem `{shown}`; see /docs"))
    })?;
    Ok(Redirect::temporary(&format!("/docs#{}", kind.code())))
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#1b1f24;background:#fff}code,pre{font:14px/1.5 ui-monospace,monospace}\
pre{background:#f4f6f8;padding:.75rem;overflow:auto;border-radius:4px}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;\
padding:.25rem .75rem .25rem 0;border-bottom:1px solid #e3e7eb}h3{margin-top:2.5rem}\
code,td,a{overflow-wrap:anywhere}td:first-child{min-width:6rem}\
.method{display:inline-block;min-width:4.5rem;font-weight:600}nav a{margin-right:1rem}\
small{color:#57606a}@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}\
pre{background:#161b22}td,th{border-color:#30363d}a{color:#58a6ff}small{color:#8d96a0}}";

fn render() -> String {
    let mut tags: Vec<&str> = TABLE.iter().map(Route::tag).collect();
    tags.sort_unstable();
    tags.dedup();
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>Slipway API</title><style>{STYLE}</style></head><body><h1>Slipway API</h1>"
    );
    for paragraph in DOCUMENT["info"]["description"].as_str().unwrap_or_default().split("\n\n") {
        put(&mut page, format_args!("<p>{}</p>", with_code(paragraph)));
    }
    page.push_str(
        "<pre>curl -H \"Authorization: Bearer $SLIPWAY_KEY\" \
         \"$SLIPWAY_SERVER/api/v1/resources\"</pre>\
         <p>The same for machines: <a href=\"/openapi.json\">/openapi.json</a></p><nav>",
    );
    for tag in &tags {
        put(&mut page, format_args!("<a href=\"#{tag}\">{tag}</a> "));
    }
    page.push_str("</nav>");
    for tag in &tags {
        put(&mut page, format_args!("<h2 id=\"{tag}\">{tag}</h2>"));
        for route in TABLE.iter().filter(|route| route.tag() == *tag) {
            put_route(&mut page, route);
        }
    }
    page.push_str("<h2 id=\"problems\">Problems</h2><table>");
    for kind in ErrorKind::ALL {
        let code = kind.code();
        put(
            &mut page,
            format_args!(
                "<tr id=\"{code}\"><td><code>{code}</code></td><td>{}</td><td>{}</td></tr>",
                error::status(*kind, false).as_u16(),
                error::title(code)
            ),
        );
    }
    page.push_str("</table><h2 id=\"documents\">Documents</h2>");
    for (name, schema) in DOCUMENT["components"]["schemas"].as_object().into_iter().flatten() {
        put_schema(&mut page, name, schema);
    }
    page.push_str("</body></html>");
    page
}

fn put_route(page: &mut String, route: &Route) {
    put(
        page,
        format_args!(
            "<h3><span class=\"method\">{}</span> <code>/api/v1{}</code></h3><p>{}</p>",
            route.method, route.path, route.summary
        ),
    );
    let Terms { least, reach, audit, .. } = route.terms();
    let audited = audit.map_or(String::new(), |verb| format!(", audited as {verb}"));
    put(page, format_args!("<p><small>{least}, {reach}{audited}</small></p>"));
    page.push_str("<table>");
    for name in &route.query {
        let about = with_code(query(route, name).0);
        put(page, format_args!("<tr><td><code>?{name}</code></td><td>{about}</td></tr>"));
    }
    for (taken, name) in
        [(route.takes_if_match, "If-Match"), (route.takes_idempotency_key, "Idempotency-Key")]
    {
        if taken {
            put(page, format_args!("<tr><td><code>{name}</code></td><td>header</td></tr>"));
        }
    }
    if let Some(body) = &route.body {
        put(page, format_args!("<tr><td>body</td><td>{}</td></tr>", link(&body.name)));
    }
    let statuses: Vec<_> = route.statuses.iter().map(u16::to_string).collect();
    let answer = match &route.answer {
        Answer::Nothing => "nothing".to_owned(),
        Answer::One(document) => link(&document.name),
        Answer::Array(document) => format!("array of {}", link(&document.name)),
        Answer::Text(media) => (*media).to_owned(),
    };
    put(page, format_args!("<tr><td>{}</td><td>{answer}</td></tr>", statuses.join(", ")));
    let refusals: Vec<_> = route.refusals.iter().map(u16::to_string).collect();
    put(
        page,
        format_args!(
            "<tr><td>refused</td><td>{}: {}</td></tr></table>",
            refusals.join(", "),
            link("Problem")
        ),
    );
}

fn put_schema(page: &mut String, name: &str, schema: &Value) {
    put(page, format_args!("<h3 id=\"{name}\">{name}</h3>"));
    if let Some(about) = schema["description"].as_str() {
        put(page, format_args!("<p>{}</p>", with_code(about)));
    }
    if let Some(members) = schema["enum"].as_array() {
        let member = |member: &Value| {
            format!("<code>{}</code>", escape(member.as_str().unwrap_or_default()))
        };
        let members: Vec<_> = members.iter().map(member).collect();
        put(page, format_args!("<p>{}</p>", members.join(", ")));
        return;
    }
    page.push_str("<table>");
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (field, of_field) in schema["properties"].as_object().into_iter().flatten() {
        let must = if required.iter().any(|name| name == field) { "" } else { " (optional)" };
        let about = of_field["description"].as_str().map_or(String::new(), with_code);
        put(
            page,
            format_args!(
                "<tr><td><code>{field}</code>{must}</td><td>{}</td><td>{about}</td></tr>",
                kind(of_field)
            ),
        );
    }
    page.push_str("</table>");
}

/// The type of a field, in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return link(reference.rsplit('/').next().unwrap_or_default());
    }
    if let Some(items) = schema.get("items") {
        return format!("array of {}", kind(items));
    }
    if let Some(format) = schema["format"].as_str().filter(|_| is_text(schema)) {
        let null = if schema["type"].is_array() { " or null" } else { "" };
        return format!("{}{null}", escape(format));
    }
    if let Some(several) = schema["oneOf"].as_array() {
        return several.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) => escape(name),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn link(name: &str) -> String {
    format!("<a href=\"#{name}\">{name}</a>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// HTML of a text that has code between backticks.
fn with_code(text: &str) -> String {
    let mut parts = text.split('`').enumerate();
    parts.by_ref().fold(String::new(), |mut all, (index, part)| {
        let part = escape(part);
        all.push_str(&if index % 2 == 1 { format!("<code>{part}</code>") } else { part });
        all
    })
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a `String` does not fail.
    let _ = page.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_everything_and_loads_nothing() {
        let page = render();
        for route in TABLE.iter() {
            assert!(page.contains(route.summary), "{}", route.summary);
        }
        for kind in ErrorKind::ALL {
            assert!(page.contains(&format!("id=\"{}\"", kind.code())), "{kind:?}");
        }
        for name in DOCUMENT["components"]["schemas"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("id=\"{name}\"")), "{name}");
        }
        for outside in ["<script", "src=", "http://", "https://", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn text_is_escaped_and_code_is_marked() {
        assert_eq!(with_code("a `b<c>` & d"), "a <code>b&lt;c&gt;</code> &amp; d");
    }
}
