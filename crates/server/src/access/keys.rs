//! API keys. Only the answer to the request that created a key has its text. It
//! is stored nowhere, so a repeated request is answered without it.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::StatusCode;
use slipway_app::access::keys;
use slipway_core::access::api_key;
use slipway_core::ids::ApiKeyId;
use slipway_core::subject::SubjectKind;
use slipway_core::time::Timestamp;
use slipway_wire::access::{ApiKey, ApiKeyWithText, CreateKey, RotateKey};

use crate::request::{
    Answered, Body, Call, Creation, Done, Id, IfMatch, Made, Referring, Shown, Tagged, create_once,
    text,
};

pub(super) async fn create(call: Call, new: Creation<CreateKey>) -> Made {
    let drawn = OnceLock::new();
    let make = async |body: CreateKey, request| {
        let CreateKey { name, role, owner, project, ttl_seconds } = body;
        let project = call.full_id_if_any(SubjectKind::Project, project).await?;
        let input = keys::CreateKey { name, role, owner, project, ttl_seconds };
        let (id, text) = keys::create(&call.context, &call.caller, input, request).await?;
        // Keep the text of a committed key only: of two concurrent requests,
        // the loser has drawn the text of a key that does not exist.
        let _ = drawn.set(text);
        Ok(id)
    };
    let show = async |id| {
        let Tagged { revision, document: about } = fetch(&call, ApiKeyId::new(id)).await?;
        let document = ApiKeyWithText { about, key: None };
        Ok(Tagged { revision, document }.created(call.below(id)))
    };
    Ok(create_once(&call, new, make, show).await?.with_secret("key", drawn.get()))
}

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let found = keys::list(&call.context, &call.caller, page).await?;
    let now = keys::now(&call.context).await?;
    call.named_page(found.map(|key| document(key, now)), page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<ApiKeyId>) -> Shown<ApiKey> {
    fetch(&call, id).await
}

pub(super) async fn whoami(call: Call) -> Shown<ApiKey> {
    let key = keys::own(&call.context, &call.caller).await?;
    show(&call, &key).await
}

pub(super) async fn rotate(
    call: Call,
    Id(id): Id<ApiKeyId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<RotateKey>,
) -> Shown<ApiKeyWithText> {
    let overlap = Duration::from_secs(body.overlap_seconds);
    let text = keys::rotate(&call.context, &call.caller, id, overlap, expected).await?;
    let Tagged { revision, document: about } = fetch(&call, id).await?;
    let key = Some(text.expose().to_owned());
    Ok(Tagged { revision, document: ApiKeyWithText { about, key } })
}

/// Revoking is idempotent.
pub(super) async fn revoke(call: Call, Id(id): Id<ApiKeyId>, IfMatch(expected): IfMatch) -> Done {
    let reason = call.query.get("reason");
    keys::revoke(&call.context, &call.caller, id, reason, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn fetch(call: &Call, id: ApiKeyId) -> Shown<ApiKey> {
    let key = keys::fetch(&call.context, &call.caller, id).await?;
    show(call, &key).await
}

async fn show(call: &Call, key: &api_key::ApiKey) -> Shown<ApiKey> {
    let now = keys::now(&call.context).await?;
    Ok(Tagged { revision: key.revision.0, document: call.named(document(key, now)).await? })
}

impl Referring for ApiKey {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(self.project_id.as_deref(), &mut self.project)]
    }
}

fn document(key: &api_key::ApiKey, now: Timestamp) -> ApiKey {
    let previous = key.previous.as_ref().map(|previous| previous.until);
    ApiKey {
        id: key.id.to_string(),
        name: key.name.clone(),
        owner: key.owner.clone(),
        role: key.role.to_string(),
        project: None,
        project_id: text(key.project_id),
        state: key.state(now).to_string(),
        created_at: key.created_at.to_string(),
        created_by: key.created_by.clone(),
        expires_at: text(key.expires_at),
        rotated_at: text(key.rotated_at),
        rotated_by: key.rotated_by.clone(),
        previous_until: text(previous.filter(|until| now < *until)),
        revoked_at: text(key.revoked_at),
        revision: key.revision.0,
    }
}
