//! Brakes: keys that deleted too much in too short a time.

use std::time::Duration;

use axum::Json;
use slipway_app::deletion::brake;
use slipway_core::deletion::brake as core;
use slipway_core::ids::ApiKeyId;
use slipway_wire::deletion::{Brake, ReleaseBrake};

use crate::request::{Answered, Body, Call, Id, Untagged, text};

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let found = brake::list(&call.context, &call.caller, page).await?;
    Ok(call.page(found.map(document), page.limit))
}

pub(super) async fn release(
    call: Call,
    Id(key): Id<ApiKeyId>,
    Body(body): Body<ReleaseBrake>,
) -> Untagged<Brake> {
    let duration = body.seconds.map(Duration::from_secs);
    let released = brake::release(&call.context, &call.caller, key, duration, &body.reason).await?;
    Ok(Json(document(&released)))
}

fn document(brake: &core::Brake) -> Brake {
    let tripped = brake.tripped.as_ref();
    Brake {
        key: brake.name.clone(),
        key_id: brake.api_key_id.to_string(),
        since: text(tripped.map(|trip| trip.at)),
        why: tripped.map(|trip| trip.why.clone()),
        released_until: text(brake.released.as_ref().map(|released| released.until)),
    }
}
