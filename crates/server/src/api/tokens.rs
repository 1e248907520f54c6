//! Bootstrap tokens by hand. The text of one is in the answer to the request
//! that issued it and is kept nowhere.

use std::sync::OnceLock;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use slipway_app::ports::store::Page;
use slipway_app::usecases::tokens;
use slipway_core::ids::{BootstrapTokenId, ResourceId};
use slipway_core::time::Timestamp;
use slipway_core::token::BootstrapToken;
use slipway_wire::access::{IssueToken, IssuedToken, Token};

use super::convert::text;
use super::keys::with_secret;
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Id};
use crate::once::{self, Creation};
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/tokens";

pub(super) async fn issue(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(resource): Id<ResourceId>,
    parameters: Parameters,
    Creation { body, claim }: Creation<IssueToken>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller) = (&state.context, &caller);
    let drawn = OnceLock::new();
    let issued = &drawn;
    let create = |request| async move {
        let lifetime = body.ttl_seconds.map(Duration::from_secs);
        let made = tokens::issue(context, caller, resource, &body.kind, lifetime, request);
        let (id, text) = made.await?;
        let _ = issued.set(text);
        Ok(id.as_uuid())
    };
    let show = |id: uuid::Uuid| async move {
        let token = tokens::fetch(context, caller, BootstrapTokenId::new(id)).await?;
        let about = document(&token, context.clock.now());
        let document = IssuedToken { about, token: None };
        let mut answer = once::answer(StatusCode::CREATED, &document, format!("{PATH}/{id}"), 1);
        // A token has no revision that could be named again.
        answer.etag = None;
        Ok(answer)
    };
    let mut answer = once::settle(&state, caller, claim, create, show).await?;
    if let Some(text) = drawn.get() {
        answer.body = with_secret(&answer.body, "token", text);
    }
    Ok(once::respond(answer))
}

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(resource): Id<ResourceId>,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<BootstrapTokenId> = parameters.take_page()?;
    parameters.finish()?;
    let found = tokens::list(&state.context, &caller, resource, wanted).await?;
    let now = state.context.clock.now();
    let items = found.map(|token| document(token, now));
    let path = format!("/api/v1/resources/{resource}/tokens");
    Ok(page(items, &path, wanted.limit, &[]))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<BootstrapTokenId>,
    parameters: Parameters,
) -> Result<Json<Token>, Rejection> {
    parameters.finish()?;
    let token = tokens::fetch(&state.context, &caller, id).await?;
    Ok(Json(document(&token, state.context.clock.now())))
}

pub(super) async fn revoke(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<BootstrapTokenId>,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let reason = parameters.take("reason");
    parameters.finish()?;
    tokens::revoke(&state.context, &caller, id, reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn document(token: &BootstrapToken, now: Timestamp) -> Token {
    let state = match (&token.consumed, token.revoked_at) {
        (Some(_), _) => "consumed",
        (None, Some(_)) => "revoked",
        (None, None) if token.is_usable(now) => "usable",
        (None, None) => "expired",
    };
    let consumed = token.consumed.as_ref();
    Token {
        token_id: token.id.to_string(),
        project_id: token.project_id.to_string(),
        provisioned_resource_id: token.provisioned_resource_id.to_string(),
        kind: token.kind.to_string(),
        state: state.to_owned(),
        issued_at: token.issued_at.to_string(),
        issued_by: token.issued_by.clone(),
        expires_at: token.expires_at.to_string(),
        consumed_at: text(consumed.map(|consumed| consumed.at)),
        consumed_by_node_id: consumed.map(|consumed| consumed.node_id.to_string()),
        revoked_at: text(token.revoked_at),
    }
}
