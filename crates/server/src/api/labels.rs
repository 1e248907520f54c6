//! Label definitions.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use slipway_app::ports::store::Page;
use slipway_app::usecases::catalog::labels;
use slipway_core::ids::LabelDefinitionId;
use slipway_wire::catalog::{DefineLabel, UpdateLabel};

use super::documents::{self, tagged};
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Segments};
use crate::once::{self, Creation};
use crate::precondition::IfMatch;
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/labels";

pub(super) async fn define(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Creation { body, claim }: Creation<DefineLabel>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller) = (&state.context, &caller);
    let create = |request| async {
        let DefineLabel { key, description, propagate } = body;
        let defined = labels::define(context, caller, &key, &description, propagate, request);
        Ok(defined.await?.as_uuid())
    };
    // By its id: a key may contain a slash, and a path segment may not.
    let show = |id: uuid::Uuid| async move {
        let label = labels::fetch(context, caller, &id.to_string()).await?;
        let document = documents::label(&label);
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
    let wanted: Page<LabelDefinitionId> = parameters.take_page()?;
    parameters.finish()?;
    let found = labels::list(&state.context, &caller, wanted).await?;
    let items = found.map(documents::label);
    Ok(page(items, PATH, wanted.limit, &[]))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let label = labels::fetch(&state.context, &caller, &reference).await?;
    Ok(tagged(documents::label(&label), label.revision.0))
}

pub(super) async fn update(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    Body(body): Body<UpdateLabel>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let context = &state.context;
    let description = body.description.as_deref();
    labels::update(context, &caller, &reference, description, body.propagate, expected).await?;
    let label = labels::fetch(context, &caller, &reference).await?;
    Ok(tagged(documents::label(&label), label.revision.0))
}

pub(super) async fn delete(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    labels::delete(&state.context, &caller, &reference, expected).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
