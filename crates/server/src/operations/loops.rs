//! Loops: the status of each.

use axum::Json;
use axum::extract::State;
use slipway_app::access::authorise::{Operation, authorise};
use slipway_wire::operations::LoopStatus;

use crate::error::Rejection;
use crate::request::Call;
use crate::state::ServerState;

pub(super) async fn list(
    call: Call,
    State(state): State<ServerState>,
) -> Result<Json<Vec<LoopStatus>>, Rejection> {
    authorise(&call.caller, Operation::LoopRead)?;
    Ok(Json(state.loops.statuses()))
}
