//! The admitted [`Call`] that every handler of our API starts from, and common
//! shapes of answers.

use std::fmt::Display;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::{ETAG, LOCATION};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use slipway_app::Context;
use slipway_app::access::authorise::Caller;
use slipway_app::access::reference::full_id;
use slipway_app::ports::Listed;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::subject::SubjectKind;
use slipway_core::time::Timestamp;

use super::idempotent_create::Created;
use super::list;
use super::names::{Referring, add_names};
use super::precondition::etag;
use super::query::Parameters;
use crate::error::Rejection;
use crate::routes::Admitted;
use crate::state::ServerState;

/// What a handler answers: anything, one document with its ETag or without, what
/// it created, or only a status.
pub(crate) type Answered = Result<Response, Rejection>;
pub(crate) type Shown<T> = Result<Tagged<T>, Rejection>;
pub(crate) type Untagged<T> = Result<Json<T>, Rejection>;
pub(crate) type Made = Result<Created, Rejection>;
pub(crate) type Done = Result<StatusCode, Rejection>;

/// A request that the guard of its row admitted. Its query has only parameters
/// that the row names.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) context: Context,
    pub(crate) caller: Caller,
    pub(crate) query: Parameters,
    path: String,
}

impl FromRequestParts<ServerState> for Call {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, Rejection> {
        let Admitted { caller, route } = parts.extensions.get().cloned().ok_or_else(|| {
            let problem = "a route without a guard was asked; the correlation id finds it";
            Refusal::new(ErrorKind::Internal, problem)
        })?;
        let mut query = Parameters::parse(&parts.uri, &route.query)?;
        for (kind, value) in query.references() {
            let text = std::mem::take(value);
            *value = full_id(&state.context, &caller, kind.as_str(), kind, text).await?;
        }
        // Routes are nested, so the path lacks the `/api/v1` prefix.
        let path = format!("/api/v1{}", parts.uri.path());
        Ok(Self { context: state.context.clone(), caller, query, path })
    }
}

impl Call {
    pub(crate) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// What a field of a body names, with the whole id for the beginning of one.
    pub(crate) async fn full_id(
        &self,
        kind: SubjectKind,
        text: String,
    ) -> Result<String, slipway_app::Error> {
        full_id(&self.context, &self.caller, kind.as_str(), kind, text).await
    }

    /// The same for a field that may be left out.
    pub(crate) async fn full_id_if_any(
        &self,
        kind: SubjectKind,
        text: Option<String>,
    ) -> Result<Option<String>, slipway_app::Error> {
        let Some(text) = text else { return Ok(None) };
        self.full_id(kind, text).await.map(Some)
    }

    /// The path of a member, for a call on its collection.
    pub(crate) fn below(&self, id: impl Display) -> String {
        format!("{}/{id}", self.path)
    }

    /// The document with the names of what it refers to.
    pub(crate) async fn named<D: Referring>(&self, mut document: D) -> Result<D, Rejection> {
        add_names(&self.context, std::slice::from_mut(&mut document)).await?;
        Ok(document)
    }

    /// A page with the names of what its documents refer to.
    pub(crate) async fn named_page<D: Referring + Serialize, C: Display>(
        &self,
        mut listed: Listed<D, C>,
        limit: u32,
    ) -> Answered {
        add_names(&self.context, &mut listed.items).await?;
        Ok(self.page(listed, limit))
    }

    /// A page of the requested list; its `next` link keeps the filters.
    pub(crate) fn page<T: Serialize, C: Display>(
        &self,
        listed: Listed<T, C>,
        limit: u32,
    ) -> Response {
        list::page(listed, &self.path, limit, self.query.filters())
    }
}

/// A document with the revision that is its ETag.
#[derive(Debug)]
pub(crate) struct Tagged<T> {
    pub(crate) revision: i64,
    pub(crate) document: T,
}

impl<T: Serialize> Tagged<T> {
    /// The answer to the create that made it.
    pub(crate) fn created(&self, location: String) -> Created {
        Created::new(&self.document, location, Some(self.revision))
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        ([(ETAG, etag(self.revision))], Json(self.document)).into_response()
    }
}

/// An answer that says where to follow what the request began.
pub(crate) fn located(
    status: StatusCode,
    location: String,
    document: impl IntoResponse,
) -> Response {
    (status, [(LOCATION, location)], document).into_response()
}

/// An optional value as documents write it.
pub(crate) fn text(value: Option<impl Display>) -> Option<String> {
    value.map(|value| value.to_string())
}
