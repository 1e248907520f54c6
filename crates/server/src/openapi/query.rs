//! Descriptions of the query parameters.

use serde_json::{Value, json};
use slipway_app::ports::store::{PAGE_DEFAULT, PAGE_MAX};
use slipway_core::broker::phase::Phase;

/// What a query parameter means; the same for every row that takes it.
pub(super) fn query(name: &str) -> (&'static str, Value) {
    let text = json!({ "type": "string" });
    let moment = json!({ "type": "string", "format": "date-time" });
    match name {
        "limit" => (
            "The greatest number of entries.",
            json!({
                "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT,
            }),
        ),
        "cursor" => ("The cursor from the `next` link of the page before.", text),
        "project" => ("Only of this project, by name or id.", text),
        "handle" => ("Only the one of this handle.", text),
        "phase" => ("Only those in this phase.", json!({ "enum": Phase::ALL })),
        "label" => (
            "Only those with this label in effect, `key` or `key=value`; several are combined with AND.",
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
        "blocked" => ("`true`, `false`, or the code of a blocker.", text),
        "show_deleted" => ("Deleted ones too.", json!({ "type": "boolean", "default": false })),
        "reason" => ("Why; kept in the audit.", text),
        "attempt" => (
            "The attempt with this number; by default the current one.",
            json!({ "type": "integer", "minimum": 1 }),
        ),
        "cloud" => ("Only of this cloud, by name or id.", text),
        "name" => ("Only the one of this name.", text),
        "state" => (
            "Only those in this state; by default the open ones.",
            json!({ "enum": ["open", "resolved", "all"] }),
        ),
        "kind" => ("Only of this kind.", text),
        "actor" => ("Only what this actor did.", text),
        "verb" => ("Only this verb.", text),
        "id" => ("Only entries about this: its id, the beginning of it, or its name.", text),
        "since" => ("Only from this time on.", moment),
        "until" => ("Only before this time.", moment),
        "after" => (
            "Start after this position; by default at the newest event.",
            json!({ "type": "integer", "format": "int64" }),
        ),
        _ => ("", text),
    }
}
