//! Loops: the status of each.

use axum::Json;
use axum::extract::State;
use slipway_app::access::authorise::{Operation, authorise};
use slipway_wire::operations::LoopStatus;

use crate::request::{Call, Untagged};
use crate::state::ServerState;

pub(super) async fn list(
    call: Call,
    State(state): State<ServerState>,
) -> Untagged<Vec<LoopStatus>> {
    authorise(&call.caller, Operation::LoopRead)?;
    Ok(Json(state.loops.statuses()))
}
