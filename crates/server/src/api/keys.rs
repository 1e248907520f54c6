//! API keys. The text of one is in the answer to the request that made it and
//! is kept nowhere: a repeated request is answered without it.

use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use slipway_app::ports::store::Page;
use slipway_app::usecases::keys;
use slipway_core::api_key;
use slipway_core::ids::ApiKeyId;
use slipway_core::secret::Secret;
use slipway_core::time::Timestamp;
use slipway_wire::access::{ApiKey, ApiKeyWithText, CreateKey, RotateKey};

use super::convert::text;
use super::documents::tagged;
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Id};
use crate::once::{self, Creation};
use crate::precondition::IfMatch;
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/keys";

pub(super) async fn create(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Creation { body, claim }: Creation<CreateKey>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller) = (&state.context, &caller);
    let drawn = OnceLock::new();
    let made = &drawn;
    let create = |request| async move {
        let CreateKey { name, role, project, ttl_seconds } = body;
        let input = keys::CreateKey { name, role, project, ttl_seconds };
        let (id, text) = keys::create(context, caller, input, request).await?;
        // Only what was committed: of two requests at once the other's text is
        // that of a key which does not exist.
        let _ = made.set(text);
        Ok(id.as_uuid())
    };
    let show = |id: uuid::Uuid| async move {
        let key = keys::fetch(context, caller, ApiKeyId::new(id)).await?;
        let about = document(&key, context.clock.now());
        let revision = about.revision;
        let document = ApiKeyWithText { about, key: None };
        Ok(once::answer(StatusCode::CREATED, &document, format!("{PATH}/{id}"), revision))
    };
    let mut answer = once::settle(&state, caller, claim, create, show).await?;
    if let Some(text) = drawn.get() {
        answer.body = with_secret(&answer.body, "key", text);
    }
    Ok(once::respond(answer))
}

/// The document with its secret, which the document that is kept has not.
pub(super) fn with_secret(body: &str, field: &str, text: &Secret) -> String {
    let mut document: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    document[field] = text.expose().into();
    document.to_string()
}

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<ApiKeyId> = parameters.take_page()?;
    parameters.finish()?;
    let found = keys::list(&state.context, &caller, wanted).await?;
    let now = state.context.clock.now();
    let items = found.map(|key| document(key, now));
    Ok(page(items, PATH, wanted.limit, &[]))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<ApiKeyId>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let key = keys::fetch(&state.context, &caller, id).await?;
    Ok(tagged(document(&key, state.context.clock.now()), key.revision.0))
}

pub(super) async fn whoami(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let key = keys::own(&state.context, &caller).await?;
    Ok(tagged(document(&key, state.context.clock.now()), key.revision.0))
}

pub(super) async fn rotate(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<ApiKeyId>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    Body(body): Body<RotateKey>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let context = &state.context;
    let overlap = Duration::from_secs(body.overlap_seconds);
    let text = keys::rotate(context, &caller, id, overlap, expected).await?;
    let key = keys::fetch(context, &caller, id).await?;
    let about = document(&key, context.clock.now());
    Ok(tagged(ApiKeyWithText { about, key: Some(text.expose().to_owned()) }, key.revision.0))
}

/// Revoking twice is the same as once.
pub(super) async fn revoke(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<ApiKeyId>,
    IfMatch(expected): IfMatch,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let reason = parameters.take("reason");
    parameters.finish()?;
    keys::revoke(&state.context, &caller, id, reason.as_deref(), expected).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn document(key: &api_key::ApiKey, now: Timestamp) -> ApiKey {
    let previous = key.previous.as_ref().map(|previous| previous.until);
    ApiKey {
        id: key.id.to_string(),
        name: key.name.clone(),
        role: key.role.to_string(),
        project_id: key.project_id.map(|id| id.to_string()),
        state: key.state(now).to_string(),
        created_at: key.created_at.to_string(),
        created_by: key.created_by.clone(),
        expires_at: text(key.expires_at),
        rotated_at: text(key.rotated_at),
        previous_until: text(previous.filter(|until| now < *until)),
        revoked_at: text(key.revoked_at),
        revision: key.revision.0,
    }
}
