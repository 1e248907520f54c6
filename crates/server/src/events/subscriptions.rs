//! Subscriptions: who receives every event, how far, and the last error.

use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use slipway_app::events::feed;
use slipway_app::events::port::Subscription as Stored;
use slipway_core::error::Refusal;
use slipway_wire::events::Subscription;

use crate::request::{Call, Done, Untagged, text};

/// There is one per configured sink, so the list has no pages.
pub(super) async fn list(call: Call) -> Untagged<Vec<Subscription>> {
    let found = feed::subscriptions(&call.context, &call.caller).await?;
    Ok(Json(found.iter().map(document).collect()))
}

pub(super) async fn remove(call: Call, name: Result<Path<String>, PathRejection>) -> Done {
    let Path(name) = name.map_err(|_| Refusal::invalid("name", "is not readable text"))?;
    feed::unsubscribe(&call.context, &call.caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn document(found: &Stored) -> Subscription {
    Subscription {
        id: found.id.to_string(),
        name: found.name.clone(),
        position: found.position,
        last_position: found.last_position,
        failures: found.failures,
        last_error: found.last_error.clone(),
        published_at: text(found.published_at),
        due_at: found.due_at.to_string(),
        claimed_by: found.claimed_by.clone(),
    }
}
