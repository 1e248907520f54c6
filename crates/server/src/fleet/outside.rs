//! What the protocol has beside Fleet: work orders, diagnostics and webhooks. Agents find their
//! lists of it empty, everything else is refused with 501 and a code.

use axum::Json;
use serde_json::Value;
use slipway_app::fleet::agents;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::AgentId;

use crate::error::Rejection;
use crate::request::{Call, Id, Untagged};

/// Nothing is pending.
pub(super) async fn none(call: Call, Id(agent): Id<AgentId>) -> Untagged<Vec<Value>> {
    agents::fetch(&call.context, &call.caller, agent, false).await?;
    Ok(Json(Vec::new()))
}

pub(super) async fn refuse() -> Rejection {
    let message = "this server has no work orders, diagnostics, webhooks or reloads of its \
                   configuration; go on without them";
    Refusal::new(ErrorKind::NotOffered, message).into()
}
