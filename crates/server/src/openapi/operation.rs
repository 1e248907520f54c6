//! One operation as it is described: what is asked with, what is answered.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use slipway_app::usecases::read::{PAGE_DEFAULT, PAGE_MAX};
use slipway_core::phase::Phase;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::api::TABLE;

/// The named schemas that a document refers to.
pub(super) type Schemas = Vec<(String, RefOr<Schema>)>;

/// A document by its name, and how to get its schema with all that it holds.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) collect: fn(&mut Schemas),
}

impl Document {
    pub(super) fn of<T: ToSchema>() -> Self {
        Self {
            name: T::name().into_owned(),
            collect: |schemas| {
                schemas.push((T::name().into_owned(), T::schema()));
                T::schemas(schemas);
            },
        }
    }
}

/// What a successful answer holds.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Nothing,
    One(Document),
    /// An array, in pages.
    Many(Document),
    /// Something else than JSON.
    Text(&'static str),
}

/// A parameter of the query.
#[derive(Debug, Clone)]
pub(super) struct Query {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) schema: Value,
}

#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    /// Below `/api/v1`.
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: Vec<Query>,
    pub(super) body: Option<Document>,
    pub(super) answer: Answer,
    pub(super) statuses: Vec<u16>,
    pub(super) refusals: BTreeSet<u16>,
    pub(super) takes_if_match: bool,
    pub(super) takes_idempotency_key: bool,
}

/// What any request may be answered with: nonsense in the query, no key, too
/// little of one, too many requests, no database.
const ALWAYS: [u16; 5] = [400, 401, 403, 429, 503];

impl Operation {
    fn new(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        let mut refusals = BTreeSet::from(ALWAYS);
        if path.contains('{') {
            refusals.insert(404);
        }
        Self {
            method,
            path,
            summary,
            query: Vec::new(),
            body: None,
            answer: Answer::Nothing,
            statuses: vec![200],
            refusals,
            takes_if_match: false,
            takes_idempotency_key: false,
        }
    }

    /// An array in pages.
    pub(super) fn list<T: ToSchema>(path: &'static str, summary: &'static str) -> Self {
        let mut list = Self::new("GET", path, summary);
        list.answer = Answer::Many(Document::of::<T>());
        list.query = vec![query("limit"), query("cursor")];
        list
    }

    /// An array as a whole.
    pub(super) fn all<T: ToSchema>(path: &'static str, summary: &'static str) -> Self {
        Self { query: Vec::new(), ..Self::list::<T>(path, summary) }
    }

    /// Asked for by a POST without a body, since it does something.
    pub(super) fn by_post(self) -> Self {
        Self { method: "POST", ..self }
    }

    pub(super) fn read<T: ToSchema>(path: &'static str, summary: &'static str) -> Self {
        let answer = Answer::One(Document::of::<T>());
        Self { answer, ..Self::new("GET", path, summary) }
    }

    /// Something that is streamed.
    pub(super) fn stream(path: &'static str, media: &'static str, summary: &'static str) -> Self {
        Self { answer: Answer::Text(media), ..Self::new("GET", path, summary) }
    }

    /// Makes something new, once for each `Idempotency-Key`.
    pub(super) fn create<B: ToSchema, T: ToSchema>(
        path: &'static str,
        summary: &'static str,
    ) -> Self {
        let mut create = Self::new("POST", path, summary).with_body::<B>();
        create.answer = Answer::One(Document::of::<T>());
        create.statuses = vec![201];
        create.takes_idempotency_key = true;
        create
    }

    /// Changes what is there.
    pub(super) fn change<T: ToSchema>(
        method: &'static str,
        path: &'static str,
        summary: &'static str,
    ) -> Self {
        let mut change = Self::new(method, path, summary);
        change.refusals.extend([409, 422]);
        change.answer = Answer::One(Document::of::<T>());
        change
    }

    /// The same with nothing to tell afterwards.
    pub(super) fn quiet(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        let mut quiet = Self::new(method, path, summary);
        quiet.refusals.extend([409, 422]);
        quiet.statuses = vec![204];
        quiet
    }

    pub(super) fn with_body<B: ToSchema>(mut self) -> Self {
        self.body = Some(Document::of::<B>());
        // Slow, large, at odds with what is there, naming what is not there.
        self.refusals.extend([408, 409, 413, 422]);
        self
    }

    /// Takes `If-Match`.
    pub(super) fn conditional(mut self) -> Self {
        self.takes_if_match = true;
        self.refusals.insert(412);
        self
    }

    pub(super) fn with_query(mut self, names: &[&'static str]) -> Self {
        self.query.extend(names.iter().map(|name| query(name)));
        // A filter may name a project that is not there.
        if names.contains(&"project") {
            self.refusals.extend([404, 422]);
        }
        self
    }

    pub(super) fn answering(self, statuses: &[u16]) -> Self {
        Self { statuses: statuses.to_vec(), ..self }
    }

    pub(super) fn refusing(mut self, status: u16) -> Self {
        self.refusals.insert(status);
        self
    }

    /// The least role, the reach and the audit verb, from the table of routes.
    pub(super) fn access(&self) -> Option<(String, String, Option<&'static str>)> {
        let row = TABLE.iter().find(|row| (row.method, row.path) == (self.method, self.path))?;
        Some((row.least.as_str().to_owned(), format!("{:?}", row.scope).to_lowercase(), row.audit))
    }

    /// What it is about: the first part of its path.
    pub(super) fn tag(&self) -> &'static str {
        self.path.split('/').nth(1).unwrap_or_default()
    }

    /// The names between braces, in order.
    pub(super) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        let segments = self.path.split('/');
        segments.filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }
}

/// A parameter means the same wherever it is taken.
fn query(name: &'static str) -> Query {
    let text = json!({ "type": "string" });
    let moment = json!({ "type": "string", "format": "date-time" });
    let (about, schema) = match name {
        "limit" => (
            "How many at most.",
            json!({
                "type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_DEFAULT,
            }),
        ),
        "cursor" => ("Where the page begins, from the `next` link of the page before.", text),
        "project" => ("Only of this project, by name or id.", text),
        "handle" => ("Only the one of this handle.", text),
        "phase" => ("Only those in this phase.", json!({ "enum": Phase::ALL.map(Phase::as_str) })),
        "label" => (
            "Only those with this label in effect, `key` or `key=value`; all have to hold.",
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
        "blocked" => ("`true`, `false`, or the code of a blocker.", text),
        "show_deleted" => ("Deleted ones too.", json!({ "type": "boolean", "default": false })),
        "reason" => ("Why; it stands in the audit.", text),
        "cloud" => ("Only of this cloud, by name or id.", text),
        "name" => ("Only the one of this name.", text),
        "state" => (
            "Those in this state; the open ones without.",
            json!({ "enum": ["open", "resolved", "all"] }),
        ),
        "kind" => ("Only of this kind.", text),
        "actor" => ("Only what this one did.", text),
        "verb" => ("Only this verb.", text),
        "id" => ("Only what is about this.", json!({ "type": "string", "format": "uuid" })),
        "since" => ("Not before this moment.", moment),
        "until" => ("Before this moment.", moment),
        "after" => (
            "The position after which the stream begins; the end without.",
            json!({ "type": "integer", "format": "int64" }),
        ),
        _ => ("", text),
    };
    Query { name, about, schema }
}
