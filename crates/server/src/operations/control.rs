//! The mode of the installation: read it, freeze and lift, resume, and list the
//! withheld actions.

use std::time::Duration;

use axum::Json;
use axum::http::HeaderName;
use axum::response::IntoResponse;
use slipway_app::operations::control;
use slipway_app::operations::port::WithheldAction as Withheld;
use slipway_app::ports::Listed;
use slipway_core::Refusal;
use slipway_core::operations::control::FREEZE_DEFAULT;
use slipway_wire::operations::{
    Control, Freeze, Observing, PutFreeze, Replica, Resume, VERSION, WITHHELD_UNCHECKED,
    WithheldAction,
};

use crate::request::{Answered, Body, Call, Untagged};

pub(super) async fn get(call: Call) -> Answered {
    // The version is shown only to callers with a key.
    let version = [(HeaderName::from_static(VERSION), env!("CARGO_PKG_VERSION"))];
    Ok((version, show(&call).await?).into_response())
}

pub(super) async fn freeze(call: Call, Body(body): Body<PutFreeze>) -> Untagged<Control> {
    let length = body.for_seconds.map_or(FREEZE_DEFAULT, Duration::from_secs);
    control::freeze(&call.context, &call.caller, length, &body.reason).await?;
    show(&call).await
}

pub(super) async fn unfreeze(call: Call) -> Untagged<Control> {
    let missing = || Refusal::invalid("reason", "must say why, as `?reason=` of the request");
    let reason = call.query.get("reason").ok_or_else(missing)?;
    control::unfreeze(&call.context, &call.caller, reason).await?;
    show(&call).await
}

pub(super) async fn resume(call: Call, Body(body): Body<Resume>) -> Untagged<Control> {
    control::resume(&call.context, &call.caller, &body.reason).await?;
    show(&call).await
}

pub(super) async fn withheld(call: Call) -> Answered {
    let page = call.query.page()?;
    let (lines, open) = control::withheld(&call.context, &call.caller, page).await?;
    let lines = Listed::complete(lines, page.limit, |line| line.provisioned_resource_id);
    let open = [(HeaderName::from_static(WITHHELD_UNCHECKED), open.to_string())];
    Ok((open, call.page(lines.map(action), page.limit)).into_response())
}

async fn show(call: &Call) -> Untagged<Control> {
    Ok(Json(document(control::status(&call.context, &call.caller).await?)))
}

fn document(status: control::Status) -> Control {
    let control = status.control;
    let mode = control.mode().name().to_owned();
    // The row keeps an expired freeze until the next heartbeat; skip it.
    let freeze = control.freeze.filter(|freeze| control.now < freeze.until);
    let replicas = status.replicas.into_iter();
    Control {
        installation_id: control.installation.to_string(),
        mode,
        revision: control.revision.0,
        freeze: freeze.map(|freeze| Freeze {
            since: freeze.since.to_string(),
            until: freeze.until.to_string(),
            by: freeze.by,
            reason: freeze.reason,
        }),
        observing: control.observing.map(|observing| Observing {
            since: observing.since.to_string(),
            by: observing.by,
            reason: observing.reason,
        }),
        settled: status.settled,
        replicas: replicas
            .map(|status| Replica {
                worker: status.replica.worker,
                seen_at: status.replica.seen_at.to_string(),
                obeys: status.obeys,
                lapsed: status.lapsed,
            })
            .collect(),
        public_url: control.public_url,
    }
}

fn action(line: &Withheld) -> WithheldAction {
    WithheldAction {
        resource_id: line.resource_id.to_string(),
        provisioned_resource_id: line.provisioned_resource_id.to_string(),
        project: line.project.clone(),
        handle: line.handle.clone(),
        phase: line.phase.clone(),
        action: line.action.clone().unwrap_or_else(|| "unknown".to_owned()),
        since: line.since.to_string(),
        message: line.message.clone(),
    }
}
