//! Whom a key speaks for, and which keys there are.

use axum::Json;
use slipway_app::access::keys;
use slipway_app::ports::store::Page;
use slipway_core::access::api_key::Principal;
use slipway_core::access::role::Role;
use slipway_core::ids::ApiKeyId;
use slipway_wire::fleet::{AuthResponse, PakSummary};

use super::lists;
use crate::request::{Answered, Call, Untagged, text};

pub(super) async fn authenticate(call: Call) -> Untagged<AuthResponse> {
    let caller = &call.caller;
    let (agent, generator) = match caller.principal {
        Principal::Holder => (None, None),
        Principal::Agent(id) => (Some(id), None),
        Principal::Generator(id) => (None, Some(id)),
    };
    let is_holder = caller.principal == Principal::Holder;
    let installation = call.context.stores.operations.installation().await;
    Ok(Json(AuthResponse {
        admin: is_holder && caller.role == Role::Admin,
        agent: text(agent),
        generator: text(generator),
        installation: Some(installation.map_err(slipway_app::Error::from)?.to_string()),
        readonly: is_holder && caller.role == Role::Viewer,
    }))
}

pub(super) async fn list(call: Call) -> Answered {
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let page = Page { after: page.after.map(ApiKeyId::new), limit: page.limit };
        let found = keys::list(&call.context, &call.caller, page).await?;
        pages.add(found.map(|key| PakSummary { id: key.id.to_string(), name: key.name.clone() }));
    }
    Ok(pages.answer())
}
