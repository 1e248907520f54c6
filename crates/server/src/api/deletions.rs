//! Deletions: reading what was asked to go, by whom and why.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use slipway_app::ports::store::Page;
use slipway_app::usecases::read;
use slipway_core::ids::DeletionId;
use slipway_wire::api::Deletion;

use super::convert;
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Id};
use crate::query::Parameters;
use crate::state::ServerState;

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<DeletionId> = parameters.take_page()?;
    parameters.finish()?;
    let deletions = read::deletions(&state.context, &caller, wanted).await?;
    let items = deletions.map(convert::deletion);
    Ok(page(items, "/api/v1/deletions", wanted.limit, &[]))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<DeletionId>,
    parameters: Parameters,
) -> Result<Json<Deletion>, Rejection> {
    parameters.finish()?;
    let deletion = read::deletion(&state.context, &caller, id).await?;
    Ok(Json(convert::deletion(&deletion)))
}
