//! Bootstrap tokens issued by hand. Only the answer to the request that issued
//! a token contains its text, which is stored nowhere.

use std::sync::OnceLock;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use slipway_app::nodes::tokens;
use slipway_core::ids::{BootstrapTokenId, ResourceId};
use slipway_core::nodes::token::BootstrapToken;
use slipway_core::time::Timestamp;
use slipway_wire::nodes::{IssueToken, IssuedToken, Reenrol, Token};
use uuid::Uuid;

use crate::error::Rejection;
use crate::request::{
    Answered, Call, Created, Creation, Done, Id, Made, Referring, Untagged, create_once, text,
};
use crate::state::{NodeSettings, ServerState};

pub(super) async fn issue(
    call: Call,
    State(state): State<ServerState>,
    Id(resource): Id<ResourceId>,
    new: Creation<IssueToken>,
) -> Made {
    let drawn = OnceLock::new();
    let make = async |body: IssueToken, request| {
        let (context, caller) = (&call.context, &call.caller);
        let lifetime = body.ttl_seconds.map(Duration::from_secs);
        let made = tokens::issue(context, caller, resource, &body.kind, lifetime, request);
        let (id, text) = made.await?;
        let _ = drawn.set(text);
        Ok(id)
    };
    let show = async |id| issued(&call, &state.node_settings, id).await;
    Ok(create_once(&call, new, make, show).await?.with_secret("token", drawn.get()))
}

pub(super) async fn reenrol(
    call: Call,
    State(state): State<ServerState>,
    Id(resource): Id<ResourceId>,
    new: Creation<Reenrol>,
) -> Made {
    let drawn = OnceLock::new();
    let make = async |body: Reenrol, request| {
        let (context, caller) = (&call.context, &call.caller);
        let lifetime = body.ttl_seconds.map(Duration::from_secs);
        let made = tokens::reenrol(context, caller, resource, &body.reason, lifetime, request);
        let (id, text) = made.await?;
        let _ = drawn.set(text);
        Ok(id)
    };
    let show = async |id| issued(&call, &state.node_settings, id).await;
    Ok(create_once(&call, new, make, show).await?.with_secret("token", drawn.get()))
}

/// The answer to the request that issued the token, without its text.
async fn issued(call: &Call, settings: &NodeSettings, id: Uuid) -> Result<Created, Rejection> {
    let about = fetch(call, BootstrapTokenId::new(id)).await?;
    let document = IssuedToken {
        about,
        token: None,
        api_url: Some(settings.public_url.clone()),
        authorities: settings.authorities.clone(),
    };
    // A token has no revision, so it gets no ETag.
    Ok(Created::new(&document, format!("/api/v1/tokens/{id}"), None))
}

pub(super) async fn list(call: Call, Id(resource): Id<ResourceId>) -> Answered {
    let page = call.query.page()?;
    let found = tokens::list(&call.context, &call.caller, resource, page).await?;
    let now = call.now();
    call.named_page(found.map(|token| document(token, now)), page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<BootstrapTokenId>) -> Untagged<Token> {
    Ok(Json(fetch(&call, id).await?))
}

pub(super) async fn revoke(call: Call, Id(id): Id<BootstrapTokenId>) -> Done {
    tokens::revoke(&call.context, &call.caller, id, call.query.get("reason")).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn fetch(call: &Call, id: BootstrapTokenId) -> Result<Token, Rejection> {
    let token = tokens::fetch(&call.context, &call.caller, id).await?;
    call.named(document(&token, call.now())).await
}

impl Referring for Token {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(Some(&self.provisioned_resource_id), &mut self.resource)]
    }
}

fn document(token: &BootstrapToken, now: Timestamp) -> Token {
    let consumed = token.consumed.as_ref();
    Token {
        token_id: token.id.to_string(),
        project_id: token.project_id.to_string(),
        resource: None,
        provisioned_resource_id: token.provisioned_resource_id.to_string(),
        kind: token.kind.to_string(),
        state: token.state(now).to_string(),
        issued_at: token.issued_at.to_string(),
        issued_by: token.issued_by.clone(),
        expires_at: token.expires_at.to_string(),
        consumed_at: text(consumed.map(|consumed| consumed.at)),
        consumed_by_node_id: text(consumed.map(|consumed| consumed.node_id)),
        revoked_at: text(token.revoked_at),
    }
}
