//! Credentials, and which projects may use them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use slipway_app::ports::catalog::CredentialFilter;
use slipway_app::ports::store::Page;
use slipway_app::usecases::catalog::credentials;
use slipway_core::error::Refusal;
use slipway_core::ids::CloudCredentialId;
use slipway_wire::catalog::{CreateCredential, UpdateCredential};

use super::documents::{self, deleted, tagged};
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Id, Segments};
use crate::once::{self, Creation};
use crate::precondition::IfMatch;
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/credentials";

pub(super) async fn create(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Creation { body, claim }: Creation<CreateCredential>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller) = (&state.context, &caller);
    let create = |request| async {
        let CreateCredential { cloud, name, kv_mount, kv_path } = body;
        let input = credentials::CreateCredential { cloud, name, kv_mount, kv_path };
        Ok(credentials::create(context, caller, input, request).await?.as_uuid())
    };
    let show = |id| async move {
        let id = CloudCredentialId::new(id);
        let credential = credentials::fetch(context, caller, id, true).await?;
        let document = documents::credential(&credential);
        let location = format!("{PATH}/{id}");
        Ok(once::answer(StatusCode::CREATED, &document, location, document.revision))
    };
    once::once(&state, caller, claim, create, show).await
}

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<CloudCredentialId> = parameters.take_page()?;
    let filter = CredentialFilter {
        cloud: parameters.take("cloud"),
        name: parameters.take("name"),
        show_deleted: parameters.take_flag("show_deleted")?,
    };
    parameters.finish()?;
    let found = credentials::list(&state.context, &caller, &filter, wanted).await?;
    let items = found.map(documents::credential);
    let filters = [
        ("cloud", filter.cloud.as_deref()),
        ("name", filter.name.as_deref()),
        ("show_deleted", filter.show_deleted.then_some("true")),
    ];
    Ok(page(items, PATH, wanted.limit, &filters))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<CloudCredentialId>,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let show_deleted = parameters.take_flag("show_deleted")?;
    parameters.finish()?;
    let credential = credentials::fetch(&state.context, &caller, id, show_deleted).await?;
    Ok(tagged(documents::credential(&credential), credential.revision.0))
}

pub(super) async fn update(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<CloudCredentialId>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    Body(body): Body<UpdateCredential>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (mount, path) = (body.kv_mount.as_deref(), body.kv_path.as_deref());
    credentials::update(&state.context, &caller, id, mount, path, expected).await?;
    let credential = credentials::fetch(&state.context, &caller, id, false).await?;
    Ok(tagged(documents::credential(&credential), credential.revision.0))
}

pub(super) async fn delete(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<CloudCredentialId>,
    IfMatch(expected): IfMatch,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let reason = parameters.take("reason");
    parameters.finish()?;
    let reason = reason.as_deref();
    let deletion = credentials::delete(&state.context, &caller, id, reason, expected).await?;
    deleted(&state, &caller, deletion).await
}

/// The credentials that a project may use.
pub(super) async fn assigned(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([project]): Segments<1>,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<CloudCredentialId> = parameters.take_page()?;
    parameters.finish()?;
    let found = credentials::assigned(&state.context, &caller, &project, wanted).await?;
    let items = found.map(documents::credential_assignment);
    let path = format!("/api/v1/projects/{project}/credentials");
    Ok(page(items, &path, wanted.limit, &[]))
}

/// Assigning twice is the same as once, so there is nothing to create.
pub(super) async fn assign(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([project, credential]): Segments<2>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let credential = parse(&credential)?;
    credentials::assign(&state.context, &caller, &project, credential).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn withdraw(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([project, credential]): Segments<2>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let credential = parse(&credential)?;
    credentials::withdraw(&state.context, &caller, &project, credential).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn parse(text: &str) -> Result<CloudCredentialId, Refusal> {
    Ok(text.parse()?)
}
