//! Descriptions of the query parameters.

use serde_json::{Value, json};
use slipway_app::ports::store::{PAGE_DEFAULT, PAGE_MAX};
use slipway_core::access::audit::VERBS;
use slipway_core::blocker::BlockerCode;

use crate::broker::{TAIL_DEFAULT, TAIL_MAX};
use crate::fleet::WAIT_MAX;
use crate::routes::Route;

/// What a query parameter of a row means, and what the server takes for it.
pub(super) fn query(route: &Route, name: &str) -> (&'static str, Value) {
    let text = json!({ "type": "string" });
    let set = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    match name {
        "kind" if route.tag() == "apply-sources" => {
            ("The kind of the object.", set("DocumentKind"))
        }
        "project" if route.tag() == "apply-sources" => ("The project of the object.", text),
        "cloud" if route.tag() == "apply-sources" => ("The cloud of the object.", text),
        "name" if route.tag() == "apply-sources" => ("The name of the object.", text),
        "limit" if route.is_in_fleet => (
            "The greatest number of entries; by default all of them.",
            json!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX }),
        ),
        "since" if route.is_in_fleet => ("Accepted; there is nothing to leave out.", text),
        "offset" if route.is_in_fleet => (
            "How many entries to skip.",
            json!({ "type": "integer", "minimum": 0, "maximum": 100_000 }),
        ),
        "mode" => (
            "Accepted; both modes answer the same.",
            json!({ "type": "string", "enum": ["incremental", "full"] }),
        ),
        "wait" => (
            "How many seconds to hold the answer back while nothing changed since the tag in `If-None-Match`.",
            json!({ "type": "integer", "minimum": 0, "maximum": WAIT_MAX, "default": 0 }),
        ),
        "pak_id" => ("Accepted; a list has what the key may see.", text),
        "work_type" => ("Accepted; there are no work orders.", text),
        "generator_id" => (
            "Only of this generator; of agents those that are registered with it.",
            json!({ "type": "string", "format": "uuid" }),
        ),
        "cluster_name" => ("Only those of this cluster.", text),
        "keep" => (
            "Whether agents let go of what they deployed instead of removing it.",
            json!({ "type": "boolean", "default": false }),
        ),
        "deletion_marker" => (
            "Whether it is a marker: it has no content, and tells agents to remove the stack.",
            json!({ "type": "boolean", "default": false }),
        ),
        "actor_type" => ("Only what such an actor did.", set("ActorType")),
        "actor_id" => (
            "Only what this agent did, or with `actor_type=generator` this generator.",
            json!({ "type": "string", "format": "uuid" }),
        ),
        "action" => ("Only this verb.", json!({ "type": "string", "enum": VERBS })),
        "resource_type" => ("Only about things of this kind.", set("SubjectKind")),
        "resource_id" => {
            ("Only about the thing with this id.", json!({ "type": "string", "format": "uuid" }))
        }
        "from" => ("Only from this time on.", json!({ "type": "string", "format": "date-time" })),
        "to" => ("Only before this time.", json!({ "type": "string", "format": "date-time" })),
        "limit" => (
            "The greatest number of entries.",
            json!({
                "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT,
            }),
        ),
        "cursor" => ("The cursor from the `next` link of the page before.", text),
        "project" => ("Only of this project: its name, its id or the beginning of it.", text),
        "handle" => ("Only the one of this handle.", text),
        "blueprint" => ("Only of this blueprint: its slug or its id.", text),
        "phase" => ("Only those in this phase.", set("Phase")),
        "label" => (
            "Only those with this label in effect, `key` or `key=value`; several are combined with AND.",
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
        "blocked" => {
            let codes = BlockerCode::ALL.iter().map(|code| code.as_str());
            let taken: Vec<_> = std::iter::once("true").chain(codes).collect();
            (
                "`true` for those with any blocker, or the code of one.",
                json!({ "type": "string", "enum": taken }),
            )
        }
        "show_deleted" => ("Deleted ones too.", json!({ "type": "boolean", "default": false })),
        "dry_run" => (
            "Only answer what would change; nothing is written.",
            json!({ "type": "boolean", "default": false }),
        ),
        "grace" => (
            "How long to wait before anything is touched, such as `24h`; until then the deletion can be cancelled.",
            text,
        ),
        "cascade" => {
            ("Whether what is in it goes with it.", json!({ "type": "boolean", "default": false }))
        }
        "break_glass" => (
            "Whether an admin lets it pass the deletion brake and the approval; needs a reason.",
            json!({ "type": "boolean", "default": false }),
        ),
        "plan" => (
            "The id of a plan of this deletion: it is refused if what would go is not what the plan read.",
            json!({ "type": "string", "format": "uuid" }),
        ),
        "reason" => ("Why; kept in the audit.", text),
        "attempt" => (
            "The attempt with this number; by default the current one.",
            json!({ "type": "integer", "format": "int32", "minimum": 1 }),
        ),
        "tail" => (
            "So many lines at its end.",
            json!({ "type": "integer", "minimum": 0, "maximum": TAIL_MAX, "default": TAIL_DEFAULT }),
        ),
        "offset" => (
            "From this byte on instead: `next_offset` of the answer before.",
            json!({ "type": "integer", "format": "int64", "minimum": 0 }),
        ),
        "cloud" => ("Only of this cloud: its name, its id or the beginning of it.", text),
        "state" if route.tag() == "deletions" => {
            ("Only those in this state.", set("DeletionState"))
        }
        "state" if route.path.ends_with("/members") => {
            ("Only those in this state.", set("RolloutMemberState"))
        }
        "state" if route.tag().starts_with("tenant") || route.path.ends_with("/tenants") => {
            ("Only those in this state.", set("TenantJobState"))
        }
        "workspace" => ("Only of this workspace: its name, its id or the beginning of it.", text),
        "profile" => ("Only of this tenant profile: its name or its id.", text),
        "deep" => (
            "Also compare columns and indexes with a tenant that is built for it and removed again.",
            json!({ "type": "boolean", "default": false }),
        ),
        "state" if route.tag() == "rollouts" => ("Only those in this state.", set("RolloutState")),
        "subject" => ("Only of this blueprint: its slug or its id.", text),
        "name" if route.tag() == "deletions" => {
            ("Only those of something with this name, or of the thing with this id.", text)
        }
        "kind" if route.tag() == "deletions" => {
            ("Only those of things of this kind.", set("SubjectKind"))
        }
        "name" => ("Only the one of this name.", text),
        "requested_by" => ("Only those that this actor asked for, such as `key:admin`.", text),
        "restorable" => {
            ("Only those that can be restored now.", json!({ "type": "boolean", "default": false }))
        }
        "state" => (
            "Only those in this state; by default the open ones.",
            json!({ "type": "string", "enum": ["open", "resolved", "all"] }),
        ),
        "kind" if route.tag() == "leaks" => ("Only of this kind.", set("LeakKind")),
        "kind" => ("Only about things of this kind.", set("SubjectKind")),
        "actor" => (
            "Only what this actor did, such as `key:admin`.",
            json!({ "type": "string", "pattern": "^(key|node|loop|replica):" }),
        ),
        "verb" => ("Only this verb.", json!({ "type": "string", "enum": VERBS })),
        "id" => ("Only entries about this: its id, the beginning of it, or its name.", text),
        "since" => (
            "Only from this time on: a time such as `2026-01-31T12:00:00Z`, or how long ago, such as `8d` or `1h`.",
            text,
        ),
        "until" => (
            "Only before this time: a time such as `2026-01-31T12:00:00Z`, or how long ago, such as `8d` or `1h`.",
            text,
        ),
        "after" => (
            "Start after this position; by default at the newest event.",
            json!({ "type": "integer", "format": "int64", "minimum": 0 }),
        ),
        _ => ("", text),
    }
}
