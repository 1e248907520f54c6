//! Clouds.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use slipway_app::ports::store::Page;
use slipway_app::usecases::catalog::clouds;
use slipway_core::ids::CloudId;
use slipway_wire::catalog::{CreateCloud, UpdateCloud};

use super::documents::{self, deleted, tagged};
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Segments};
use crate::once::{self, Creation};
use crate::precondition::IfMatch;
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/clouds";

pub(super) async fn create(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Creation { body, claim }: Creation<CreateCloud>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller) = (&state.context, &caller);
    let create = |request| async {
        let CreateCloud { name, provider, endpoint } = body;
        let made = clouds::create(context, caller, &name, &provider, endpoint, request).await?;
        Ok(made.as_uuid())
    };
    let show = |id: uuid::Uuid| async move {
        let cloud = clouds::fetch(context, caller, &id.to_string(), true).await?;
        let document = documents::cloud(&cloud);
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
    let wanted: Page<CloudId> = parameters.take_page()?;
    let show_deleted = parameters.take_flag("show_deleted")?;
    parameters.finish()?;
    let found = clouds::list(&state.context, &caller, wanted, show_deleted).await?;
    let items = found.map(documents::cloud);
    let filters = [("show_deleted", show_deleted.then_some("true"))];
    Ok(page(items, PATH, wanted.limit, &filters))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let show_deleted = parameters.take_flag("show_deleted")?;
    parameters.finish()?;
    let cloud = clouds::fetch(&state.context, &caller, &reference, show_deleted).await?;
    Ok(tagged(documents::cloud(&cloud), cloud.revision.0))
}

pub(super) async fn update(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    Body(body): Body<UpdateCloud>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    clouds::update(&state.context, &caller, &reference, body.endpoint, expected).await?;
    let cloud = clouds::fetch(&state.context, &caller, &reference, false).await?;
    Ok(tagged(documents::cloud(&cloud), cloud.revision.0))
}

pub(super) async fn delete(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    IfMatch(expected): IfMatch,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let reason = parameters.take("reason");
    parameters.finish()?;
    let reason = reason.as_deref();
    let id = clouds::delete(&state.context, &caller, &reference, reason, expected).await?;
    deleted(&state, &caller, id).await
}
