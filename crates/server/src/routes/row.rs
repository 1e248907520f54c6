//! One row of the table: method, path, operation (least role, reach and audit
//! verb, see [`slipway_app::access::authorise::Operation`]), handler, summary, request
//! and answer. A row begins with its method; the calls that follow add
//! documents, query parameters and statuses.

use std::collections::BTreeSet;
use std::fmt;

use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use serde::de::DeserializeOwned;
use slipway_app::access::authorise::{Operation, Terms};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::state::ServerState;

/// One route.
pub struct Route {
    /// In capitals.
    pub method: &'static str,
    /// Below `/api/v1`, with its parameters in braces.
    pub path: &'static str,
    pub operation: Operation,
    pub summary: &'static str,
    /// The query parameters that it takes; any other is refused.
    pub(crate) query: Vec<&'static str>,
    /// The one of them that has to be given.
    pub(crate) required: Option<&'static str>,
    pub(crate) body: Option<Document>,
    pub(crate) answer: Answer,
    pub(crate) statuses: Vec<u16>,
    pub(crate) refusals: BTreeSet<u16>,
    pub(crate) takes_if_match: bool,
    pub(crate) takes_idempotency_key: bool,
    /// It speaks Fleet's protocol, which has codes of its own for some refusals.
    pub(crate) is_in_fleet: bool,
    handler: MethodRouter<ServerState>,
}

/// The body of a successful answer.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Nothing,
    One(Document),
    Array(Document),
    /// Not JSON, but this media type.
    Text(&'static str),
}

/// The named schemas that a document refers to.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// A document by its name, and how to collect its schema and all it refers to.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) collect: fn(&mut Schemas),
    /// Reads one, for tests of the examples.
    #[cfg(test)]
    pub(crate) read: fn(serde_json::Value) -> Result<(), String>,
}

impl Document {
    pub(crate) fn of<T: ToSchema + DeserializeOwned>() -> Self {
        Self {
            name: T::name().into_owned(),
            #[cfg(test)]
            read: |value| match serde_json::from_value::<T>(value) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
            collect: |schemas| {
                schemas.push((T::name().into_owned(), T::schema()));
                T::schemas(schemas);
            },
        }
    }
}

/// Every request can be refused for these reasons: a malformed query, no key,
/// too small a role, too many requests, no database.
const ALWAYS: [u16; 5] = [400, 401, 403, 429, 503];

macro_rules! methods {
    ($($method:ident $name:literal;)*) => {$(
        pub(crate) fn $method<H, T>(
            path: &'static str,
            operation: Operation,
            handler: H,
            summary: &'static str,
        ) -> Route
        where
            H: Handler<T, ServerState>,
            T: 'static,
        {
            Route::new($name, path, operation, routing::$method(handler), summary)
        }
    )*};
}

methods! {
    get "GET";
    post "POST";
    put "PUT";
    patch "PATCH";
    delete "DELETE";
}

impl Route {
    fn new(
        method: &'static str,
        path: &'static str,
        operation: Operation,
        handler: MethodRouter<ServerState>,
        summary: &'static str,
    ) -> Self {
        let mut refusals = BTreeSet::from(ALWAYS);
        if path.contains('{') {
            refusals.insert(404);
        }
        if operation.terms().audit.is_some() {
            refusals.extend([409, 422]);
        }
        Self {
            method,
            path,
            operation,
            summary,
            query: Vec::new(),
            required: None,
            body: None,
            answer: Answer::Nothing,
            statuses: vec![200],
            refusals,
            takes_if_match: false,
            takes_idempotency_key: false,
            is_in_fleet: false,
            handler,
        }
    }

    /// Answers a document.
    pub(crate) fn one<T: ToSchema + DeserializeOwned>(self) -> Self {
        Self { answer: Answer::One(Document::of::<T>()), ..self }
    }

    /// Answers an array as a whole.
    pub(crate) fn all<T: ToSchema + DeserializeOwned>(self) -> Self {
        Self { answer: Answer::Array(Document::of::<T>()), ..self }
    }

    /// Answers an array in pages.
    pub(crate) fn page<T: ToSchema + DeserializeOwned>(self) -> Self {
        self.all::<T>().query(&["limit", "cursor"])
    }

    /// Answers a stream of this media type.
    pub(crate) fn stream(self, media: &'static str) -> Self {
        Self { answer: Answer::Text(media), ..self }
    }

    /// Answers 204 without a body.
    pub(crate) fn nothing(self) -> Self {
        self.statuses(&[204])
    }

    /// Creates something from `B`, once for each `Idempotency-Key`, and answers
    /// it as `T`.
    pub(crate) fn create<B: ToSchema + DeserializeOwned, T: ToSchema + DeserializeOwned>(
        self,
    ) -> Self {
        let create = self.body::<B>().one::<T>().statuses(&[201]);
        Self { takes_idempotency_key: true, ..create }
    }

    /// Takes a JSON body.
    pub(crate) fn body<B: ToSchema + DeserializeOwned>(mut self) -> Self {
        self.body = Some(Document::of::<B>());
        self.refusals.extend([408, 413]);
        self
    }

    /// Takes `If-Match`.
    pub(crate) fn conditional(mut self) -> Self {
        self.takes_if_match = true;
        self.refuses(412)
    }

    pub(crate) fn query(mut self, names: &[&'static str]) -> Self {
        self.query.extend(names);
        // A filter may name a project that does not exist.
        if names.contains(&"project") {
            self.refusals.extend([404, 422]);
        }
        self
    }

    /// Takes this query parameter, and refuses a request without it.
    pub(crate) fn requires(self, name: &'static str) -> Self {
        Self { required: Some(name), ..self }.query(&[name])
    }

    /// Succeeds with these statuses instead of 200.
    pub(crate) fn statuses(self, statuses: &[u16]) -> Self {
        Self { statuses: statuses.to_vec(), ..self }
    }

    pub(crate) fn refuses(mut self, status: u16) -> Self {
        self.refusals.insert(status);
        self
    }

    pub(crate) fn compatible(self) -> Self {
        Self { is_in_fleet: true, ..self }
    }

    /// Answers 501, whatever is asked.
    pub(crate) fn not_offered(self) -> Self {
        self.statuses(&[501]).refuses(501)
    }

    /// Least role, reach and audit verb.
    pub fn terms(&self) -> Terms {
        self.operation.terms()
    }

    /// The first part of the path, which groups routes in the description.
    pub(crate) fn tag(&self) -> &'static str {
        self.path.split('/').nth(1).unwrap_or_default()
    }

    /// The names between braces, in order.
    pub(crate) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        let segments = self.path.split('/');
        segments.filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }

    pub(crate) fn handler(&self) -> MethodRouter<ServerState> {
        self.handler.clone()
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({:?})", self.method, self.path, self.operation)
    }
}
