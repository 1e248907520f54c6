//! Idempotent creates: the body with its `Idempotency-Key`, and how both lead
//! to one answer.

use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_app::access::idempotency;
use slipway_app::access::port::AnsweredEntry;
use slipway_core::access::idempotency::{Answer, Key, Request as Identity};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::nodes::token::SecretHash;
use slipway_core::secret::Secret;
use uuid::Uuid;

use super::call::{Call, Made};
use super::extract::{BODY_LIMIT, check_media_type, parse_json, read_body_up_to};
use super::precondition::etag;
use crate::error::Rejection;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The body of a create, and its idempotency key.
#[derive(Debug)]
pub(crate) struct Creation<T> {
    body: T,
    keyed: Option<Keyed>,
}

/// What identifies the request, apart from its caller.
#[derive(Debug)]
struct Keyed {
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
        Self::read_json(request, BODY_LIMIT).await
    }
}

impl<T> Creation<T> {
    /// Of a body up to this length.
    pub(crate) async fn read(
        request: Request,
        limit: usize,
        parse: impl FnOnce(&[u8]) -> Result<T, Refusal>,
    ) -> Result<Self, Rejection> {
        let key = key(request.headers())?;
        // Without the `/api/v1` prefix, which all creates share.
        let route = format!("{} {}", request.method(), request.uri().path());
        let bytes = read_body_up_to(request, limit).await?;
        let keyed = key.map(|key| Keyed { key, route, body_hash: SecretHash::of(&bytes) });
        Ok(Self { body: parse(&bytes)?, keyed })
    }
}

impl<T: DeserializeOwned> Creation<T> {
    pub(crate) async fn read_json(request: Request, limit: usize) -> Result<Self, Rejection> {
        check_media_type(request.headers())?;
        Self::read(request, limit, parse_json).await
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

/// Creates and answers, or repeats the earlier answer. `create` stores the key
/// with the new id in its own transaction; `show` makes the answer from the id.
///
/// Of two concurrent requests one creates. The other conflicts with what the
/// first wrote (its key, or the name that it took), reads the key again, and
/// finds the first. Both then show what was created, which may change in between;
/// whichever stores its answer first, both send that one.
pub(crate) async fn create_once<B, Id: Into<Uuid>>(
    call: &Call,
    Creation { body, keyed }: Creation<B>,
    create: impl AsyncFnOnce(B, Option<Identity>) -> Result<Id, slipway_app::Error>,
    show: impl AsyncFnOnce(Uuid) -> Made,
) -> Made {
    let Some(Keyed { key, route, body_hash }) = keyed else {
        let id = create(body, None).await?;
        return show(id.into()).await;
    };
    let context = &call.context;
    let identity = Identity { caller: call.caller.name.clone(), key, route, body_hash };
    let bound = match idempotency::find(context, &identity).await? {
        Some(bound) => bound,
        None => match create(body, Some(identity.clone())).await {
            Ok(_) => idempotency::find(context, &identity).await?.ok_or_else(lost)?,
            Err(refused) => match idempotency::find(context, &identity).await? {
                Some(bound) => bound,
                None => return Err(refused.into()),
            },
        },
    };
    let AnsweredEntry { record, answer } = bound;
    if let Some(answer) = answer {
        return Ok(Created(answer));
    }
    match show(record.subject_id).await {
        Ok(created) => Ok(Created(idempotency::keep(context, &record, created.0).await?)),
        // It may be deleted since the other request stored its answer.
        Err(gone) => match idempotency::find(context, &identity).await? {
            Some(AnsweredEntry { answer: Some(answer), .. }) => Ok(Created(answer)),
            _ => Err(gone),
        },
    }
}

fn lost() -> Refusal {
    Refusal::new(
        ErrorKind::Unavailable,
        "the key expired while the request ran; check whether it was created, or send it again",
    )
}

/// The answer to a create, as it is stored for repeated requests.
#[derive(Debug)]
pub(crate) struct Created(Answer);

impl Created {
    /// The document, its location, and its revision if it has one.
    pub(crate) fn new(document: &impl Serialize, location: String, revision: Option<i64>) -> Self {
        Self(Answer {
            status: StatusCode::CREATED.as_u16(),
            location: Some(location),
            etag: revision.map(etag),
            // Only map keys that are not text could fail here; there are none.
            body: serde_json::to_string(document).unwrap_or_default(),
        })
    }

    /// 202: the loops do the rest.
    pub(crate) fn accepted(self) -> Self {
        Self(Answer { status: StatusCode::ACCEPTED.as_u16(), ..self.0 })
    }

    /// Adds the secret that this request drew. The stored answer lacks it.
    pub(crate) fn with_secret(mut self, field: &str, secret: Option<&Secret>) -> Self {
        if let Some(secret) = secret {
            let mut document: serde_json::Value =
                serde_json::from_str(&self.0.body).unwrap_or_default();
            document[field] = secret.expose().into();
            self.0.body = document.to_string();
        }
        self
    }
}

impl IntoResponse for Created {
    fn into_response(self) -> Response {
        let Answer { status, location, etag, body } = self.0;
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in [(LOCATION, location), (ETAG, etag)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                headers.insert(name, value);
            }
        }
        (status, headers, body).into_response()
    }
}
