//! The mode of the installation: see it, freeze and lift, resume, and the plan
//! of what is withheld meanwhile.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderName;
use axum::response::{IntoResponse, Response};
use slipway_app::authorise::Caller;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_app::usecases::control;
use slipway_core::Refusal;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::rules::control::FREEZE_DEFAULT;
use slipway_wire::api::{Control, PLAN_OPEN, PutFreeze, Resume, VERSION};

use super::convert;
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body};
use crate::query::Parameters;
use crate::state::ServerState;

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let shown = show(&state, &caller).await?;
    // Only to whoever has a key: it is nobody else's business.
    let version = [(HeaderName::from_static(VERSION), env!("CARGO_PKG_VERSION"))];
    Ok((version, shown).into_response())
}

pub(super) async fn freeze(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Body(body): Body<PutFreeze>,
) -> Result<Json<Control>, Rejection> {
    parameters.finish()?;
    let length = body.for_seconds.map_or(FREEZE_DEFAULT, Duration::from_secs);
    control::freeze(&state.context, &caller, length, &body.reason).await?;
    show(&state, &caller).await
}

pub(super) async fn unfreeze(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Json<Control>, Rejection> {
    let reason = parameters.take("reason");
    parameters.finish()?;
    let reason = reason
        .ok_or_else(|| Refusal::invalid("reason", "must say why, as `?reason=` of the request"))?;
    control::unfreeze(&state.context, &caller, &reason).await?;
    show(&state, &caller).await
}

pub(super) async fn resume(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Body(body): Body<Resume>,
) -> Result<Json<Control>, Rejection> {
    parameters.finish()?;
    control::resume(&state.context, &caller, &body.reason).await?;
    show(&state, &caller).await
}

pub(super) async fn plan(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<ProvisionedResourceId> = parameters.take_page()?;
    parameters.finish()?;
    let (lines, open) = control::plan(&state.context, &caller, wanted).await?;
    let lines = Listed::whole(lines, wanted.limit, |line| line.provisioned_resource_id);
    let listed = page(lines.map(convert::plan_line), "/api/v1/control/plan", wanted.limit, &[]);
    Ok(([(HeaderName::from_static(PLAN_OPEN), open.to_string())], listed).into_response())
}

async fn show(state: &ServerState, caller: &Caller) -> Result<Json<Control>, Rejection> {
    Ok(Json(convert::control(control::status(&state.context, caller).await?)))
}
