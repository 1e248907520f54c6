//! What the last apply of a source could not apply.

use axum::Json;
use axum::http::StatusCode;
use slipway_app::files::faults as app;
use slipway_core::error::Refusal;
use slipway_core::files::fault::{Fault, Faults, MOST_FAULTS};
use slipway_wire::files::{FileFault, PutFaults};

use crate::request::{Body, Call, Done, Segments, Untagged};

pub(super) async fn list(call: Call, Segments([source]): Segments<1>) -> Untagged<Vec<FileFault>> {
    let found = app::faults(&call.context, &call.caller, &source).await?;
    let shown = |Fault { file, line, code, message }| FileFault { file, line, code, message };
    Ok(Json(found.into_iter().map(shown).collect()))
}

pub(super) async fn put(
    call: Call,
    Segments([source]): Segments<1>,
    Body(body): Body<PutFaults>,
) -> Done {
    let PutFaults { faults, total } = body;
    if faults.len() > MOST_FAULTS {
        let problem = format!("must have at most {MOST_FAULTS}; `total` counts the rest");
        return Err(Refusal::invalid("faults", problem).into());
    }
    let given = |FileFault { file, line, code, message }| Fault { file, line, code, message };
    let faults = Faults::new(faults.into_iter().map(given).collect(), total);
    app::record(&call.context, &call.caller, &source, &faults).await?;
    Ok(StatusCode::NO_CONTENT)
}
