//! Nodes: reading our registry.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use slipway_app::ports::store::Page;
use slipway_app::usecases::read;
use slipway_core::ids::NodeId;
use slipway_wire::api::Node;

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
    let wanted: Page<NodeId> = parameters.take_page()?;
    parameters.finish()?;
    let nodes = read::nodes(&state.context, &caller, wanted).await?;
    let now = state.context.clock.now();
    let items = nodes.map(|node| convert::node(node, now));
    Ok(page(items, "/api/v1/nodes", wanted.limit, &[]))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<NodeId>,
    parameters: Parameters,
) -> Result<Json<Node>, Rejection> {
    parameters.finish()?;
    let node = read::node(&state.context, &caller, id).await?;
    Ok(Json(convert::node(&node, state.context.clock.now())))
}
