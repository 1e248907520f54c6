//! Leaks: read, look for, resolve, remove.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use slipway_app::ports::Listed;
use slipway_app::ports::deletion::LeakFilter;
use slipway_app::ports::store::Page;
use slipway_app::usecases::leaks;
use slipway_core::error::Refusal;
use slipway_core::ids::LeakRecordId;
use slipway_wire::leaks::{Leak, LeakLook, LeakReason};

use super::convert;
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Id};
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/leaks";

/// Open ones, unless another state is asked for.
pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<LeakRecordId> = parameters.take_page()?;
    let asked = parameters.take("state");
    let filter = LeakFilter {
        open: match asked.as_deref() {
            None | Some("open") => Some(true),
            Some("resolved") => Some(false),
            Some("all") => None,
            Some(_) => {
                let problem = "must be `open`, `resolved` or `all`";
                return Err(Refusal::invalid("state", problem).into());
            }
        },
        kind: parameters.take("kind"),
    };
    parameters.finish()?;
    let found = leaks::leaks(&state.context, &caller, &filter, wanted).await?;
    let items = Listed::whole(found, wanted.limit, |leak| leak.id).map(convert::leak);
    let filters = [("state", asked.as_deref()), ("kind", filter.kind.as_deref())];
    Ok(page(items, PATH, wanted.limit, &filters))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<LeakRecordId>,
    parameters: Parameters,
) -> Result<Json<Leak>, Rejection> {
    parameters.finish()?;
    let found = leaks::leak(&state.context, &caller, id).await?;
    Ok(Json(convert::leak(&found)))
}

pub(super) async fn find(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
) -> Result<Json<Vec<LeakLook>>, Rejection> {
    parameters.finish()?;
    let reports = leaks::find(&state.finder, &caller).await?;
    Ok(Json(reports.iter().map(convert::look).collect()))
}

pub(super) async fn resolve(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<LeakRecordId>,
    parameters: Parameters,
    Body(body): Body<LeakReason>,
) -> Result<Json<Leak>, Rejection> {
    parameters.finish()?;
    let found = leaks::resolve(&state.finder, &caller, id, &body.reason).await?;
    Ok(Json(convert::leak(&found)))
}

/// 200 if the object is gone, 202 if it takes its time.
pub(super) async fn remove(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Id(id): Id<LeakRecordId>,
    parameters: Parameters,
    Body(body): Body<LeakReason>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let found = leaks::remove(&state.finder, &caller, id, &body.reason).await?;
    let status = if found.is_open() { StatusCode::ACCEPTED } else { StatusCode::OK };
    let location = [(LOCATION, format!("{PATH}/{id}"))];
    Ok((status, location, Json(convert::leak(&found))).into_response())
}
