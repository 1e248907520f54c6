//! Liveness and readiness. Both are answered without a key, so the answers
//! contain nothing else.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use slipway_app::operations::control;
use slipway_app::ports::store::Error as StoreError;
use slipway_wire::operations::{Probe, Readiness};

use crate::state::ServerState;

/// Probes run every few seconds; one that takes longer has failed.
const PROBE_LIMIT: Duration = Duration::from_secs(2);

pub(crate) async fn alive() -> &'static str {
    "ok"
}

pub(crate) async fn ready(State(state): State<ServerState>) -> Response {
    let readiness = readiness(&state).await;
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness)).into_response()
}

/// Asks everything at once, so that the answer comes within [`PROBE_LIMIT`].
pub(crate) async fn readiness(state: &ServerState) -> Readiness {
    let (database, loops, mode) =
        tokio::join!(database(state), state.loops.probes(PROBE_LIMIT), mode(state));
    let probes: Vec<_> = std::iter::once(database).chain(loops).chain(mode).collect();
    let ready = probes.iter().all(|probe| probe.ok);
    Readiness { ready, probes }
}

/// The mode, for people who wonder why nothing advances. It does not affect
/// readiness: requests are answered and observing continues in every mode.
async fn mode(state: &ServerState) -> Option<Probe> {
    let asked =
        tokio::time::timeout(PROBE_LIMIT, state.context.stores.operations.control_fetch()).await;
    // If the database does not answer, its own probe reports that.
    let control = asked.ok()?.ok()?;
    Some(probe("mode", Ok(&control::summary(&control.mode()))))
}

async fn database(state: &ServerState) -> Probe {
    let outcome =
        match tokio::time::timeout(PROBE_LIMIT, state.context.stores.operations.ping()).await {
            Ok(Ok(())) => Ok("it answers"),
            Ok(Err(StoreError::ReadOnly(_))) => Err("it is read-only"),
            Ok(Err(StoreError::Full(_))) => Err("it is full"),
            Ok(Err(error)) => {
                if !error.is_logged() {
                    tracing::warn!(%error, "the database refuses the probe");
                }
                Err("it does not answer; the log says why")
            }
            Err(_) => Err("it did not answer in time"),
        };
    probe("database", outcome)
}

fn probe(name: &str, outcome: Result<&str, &str>) -> Probe {
    let (Ok(detail) | Err(detail)) = outcome;
    Probe { name: name.to_owned(), ok: outcome.is_ok(), detail: detail.to_owned() }
}
