//! Removals that an agent refuses until somebody confirms them.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use slipway_app::fleet::prunes;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::prune;
use slipway_core::ids::AgentId;
use slipway_wire::fleet::{ConfirmPruneRequest, PruneConfirmation, PruneRefusal};

use crate::error::Rejection;
use crate::request::{Answered, Body, Call, Done, Id, Untagged};

pub(super) async fn refuse(
    call: Call,
    Id(agent): Id<AgentId>,
    Body(body): Body<PruneRefusal>,
) -> Done {
    let refusal = prune::PruneRefusal::parse(&body.digest, body.objects, body.total)?;
    prunes::refuse(&call.context, &call.caller, agent, &refusal).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The removal that somebody agreed to, if there is one.
pub(super) async fn list(call: Call, Id(agent): Id<AgentId>) -> Untagged<Vec<PruneConfirmation>> {
    Ok(Json(confirmed(&call, agent).await?.into_iter().collect()))
}

pub(super) async fn confirm(
    call: Call,
    Id(agent): Id<AgentId>,
    Body(body): Body<ConfirmPruneRequest>,
) -> Answered {
    prunes::confirm(&call.context, &call.caller, agent, body.digest.as_deref()).await?;
    call.context.wakes.wake_offers();
    let confirmed = confirmed(&call, agent).await?.ok_or_else(|| {
        let message = "the agent refused another removal meanwhile; look at it again";
        Refusal::new(ErrorKind::NothingToConfirm, message)
    })?;
    Ok((StatusCode::CREATED, Json(confirmed)).into_response())
}

async fn confirmed(call: &Call, agent: AgentId) -> Result<Option<PruneConfirmation>, Rejection> {
    let found = prunes::refused(&call.context, &call.caller, agent).await?;
    Ok(found.and_then(|refused| {
        let confirmed_at = refused.confirmed_at?.to_string();
        Some(PruneConfirmation { confirmed_at, digest: refused.refusal.digest })
    }))
}
