//! Loops: what each one last did.

use axum::Json;
use axum::extract::State;
use slipway_app::authorise::{Verb, authorise};
use slipway_wire::api::LoopStatus;

use crate::error::Rejection;
use crate::extract::Authenticated;
use crate::query::Parameters;
use crate::state::ServerState;

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
) -> Result<Json<Vec<LoopStatus>>, Rejection> {
    parameters.finish()?;
    authorise(&caller, Verb::LoopRead)?;
    Ok(Json(state.loops.statuses()))
}
