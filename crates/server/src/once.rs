//! Creates that happen once: the body with its `Idempotency-Key`, and the way
//! from both to one answer.

use std::future::Future;

use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_app::authorise::Caller;
use slipway_app::ports::access::Bound;
use slipway_app::usecases::idempotency;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::idempotency::{Answer, Key, Request as Asked};
use slipway_core::token::SecretHash;
use uuid::Uuid;

use crate::error::Rejection;
use crate::extract::{check_media_type, parse_json, read_body};
use crate::precondition::etag;
use crate::state::ServerState;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The body of a create, and under which key it is asked for.
#[derive(Debug)]
pub(crate) struct Creation<T> {
    pub(crate) body: T,
    pub(crate) claim: Option<Claim>,
}

/// What identifies the request, but for its caller.
#[derive(Debug)]
pub(crate) struct Claim {
    key: Key,
    route: String,
    body_hash: SecretHash,
}

impl<T, S> FromRequest<S> for Creation<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Rejection;

    async fn from_request(request: Request, _: &S) -> Result<Self, Rejection> {
        check_media_type(request.headers())?;
        let key = key(request.headers())?;
        // Without the prefix of our API, which all creates share.
        let route = format!("{} {}", request.method(), request.uri().path());
        let bytes = read_body(request).await?;
        let claim = key.map(|key| Claim { key, route, body_hash: SecretHash::of(&bytes) });
        Ok(Self { body: parse_json(&bytes)?, claim })
    }
}

fn key(headers: &HeaderMap) -> Result<Option<Key>, Refusal> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => Key::parse(value.to_str().unwrap_or_default()).map(Some),
        (Some(_), Some(_)) => Err(Refusal::invalid(IDEMPOTENCY_KEY, "is given twice")),
    }
}

/// Creates and answers, or answers as before. `create` binds the key to the id
/// that it answers, in its own transaction; `show` makes the answer from it.
///
/// Of two requests at once one creates. The other is refused by what the first
/// wrote (its key, or the name that it took), looks again, and finds the first.
pub(crate) async fn once<Created, Shown>(
    state: &ServerState,
    caller: &Caller,
    claim: Option<Claim>,
    create: impl FnOnce(Option<Asked>) -> Created,
    show: impl FnOnce(Uuid) -> Shown,
) -> Result<Response, Rejection>
where
    Created: Future<Output = Result<Uuid, slipway_app::Error>>,
    Shown: Future<Output = Result<Answer, Rejection>>,
{
    Ok(respond(settle(state, caller, claim, create, show).await?))
}

/// The same, and the answer as it is kept: for who has something to add to it
/// that must not be kept.
pub(crate) async fn settle<Created, Shown>(
    state: &ServerState,
    caller: &Caller,
    claim: Option<Claim>,
    create: impl FnOnce(Option<Asked>) -> Created,
    show: impl FnOnce(Uuid) -> Shown,
) -> Result<Answer, Rejection>
where
    Created: Future<Output = Result<Uuid, slipway_app::Error>>,
    Shown: Future<Output = Result<Answer, Rejection>>,
{
    let Some(Claim { key, route, body_hash }) = claim else {
        let id = create(None).await?;
        return show(id).await;
    };
    let context = &state.context;
    let asked = Asked { caller: caller.name.clone(), key, route, body_hash };
    let bound = match idempotency::find(context, &asked).await? {
        Some(bound) => bound,
        None => match create(Some(asked.clone())).await {
            Ok(_) => idempotency::find(context, &asked).await?.ok_or_else(lost)?,
            Err(refused) => match idempotency::find(context, &asked).await? {
                Some(bound) => bound,
                None => return Err(refused.into()),
            },
        },
    };
    let Bound { record, answer } = bound;
    if let Some(answer) = answer {
        return Ok(answer);
    }
    let answer = show(record.subject_id).await?;
    idempotency::keep(context, &record, &answer).await?;
    Ok(answer)
}

fn lost() -> Refusal {
    Refusal::new(
        ErrorKind::Unavailable,
        "the key expired while the request ran; look whether it was created, or send it again",
    )
}

/// The answer to a create: the document, where it is from now on, its revision.
pub(crate) fn answer(
    status: StatusCode,
    document: &impl Serialize,
    location: String,
    revision: i64,
) -> Answer {
    Answer {
        status: status.as_u16(),
        location: Some(location),
        etag: Some(etag(revision)),
        // These documents have text keys only, which is all that can fail.
        body: serde_json::to_string(document).unwrap_or_default(),
    }
}

pub(crate) fn respond(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [(LOCATION, answer.location), (ETAG, answer.etag)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(name, value);
        }
    }
    (status, headers, answer.body).into_response()
}
