//! Subscriptions: who gets every event, how far each is, and what ails it.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use slipway_app::usecases::events;
use slipway_core::error::Refusal;
use slipway_wire::api::Subscription;

use super::convert;
use crate::error::Rejection;
use crate::extract::Authenticated;
use crate::query::Parameters;
use crate::state::ServerState;

/// There are as many as sinks are configured, so they are not paged.
pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
) -> Result<Json<Vec<Subscription>>, Rejection> {
    parameters.finish()?;
    let found = events::subscriptions(&state.context, &caller).await?;
    Ok(Json(found.iter().map(convert::subscription).collect()))
}

pub(super) async fn remove(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    name: Result<Path<String>, axum::extract::rejection::PathRejection>,
    parameters: Parameters,
) -> Result<StatusCode, Rejection> {
    parameters.finish()?;
    let Path(name) = name.map_err(|_| Refusal::invalid("name", "is not readable text"))?;
    events::unsubscribe(&state.context, &caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
