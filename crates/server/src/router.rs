//! The table of all rows of our API, and the router of the whole server. The
//! last layer runs first: it gives the request its id, the next counts it, and
//! the error writer wraps every route.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use slipway_core::error::{ErrorKind, Refusal};
use tower_http::catch_panic::CatchPanicLayer;

use crate::error::{self, Rejection};
use crate::routes::{Guard, Route, guard};
use crate::serve::refuse_overload;
use crate::state::ServerState;
use crate::{access, broker, catalog, deletion, events, files, fleet, nodes, operations};
use crate::{correlation, health, metrics, openapi, placement, rollouts, tenants, topology};

/// Every route of our API.
pub static TABLE: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let rooms = [
        broker::rows(),
        nodes::rows(),
        catalog::rows(),
        placement::rows(),
        deletion::rows(),
        rollouts::rows(),
        fleet::rows(),
        tenants::rows(),
        topology::rows(),
        access::rows(),
        events::rows(),
        files::rows(),
        operations::rows(),
    ];
    rooms.into_iter().flatten().collect()
});

/// What the forms of pages send, below `/ui`.
static FORMS: LazyLock<Vec<Route>> = LazyLock::new(topology::form_rows);

/// Everything that this server answers.
pub fn router(state: ServerState) -> Router {
    layered(
        probes()
            .route("/", get(openapi::home))
            .route("/openapi.json", get(openapi::machines))
            .route("/docs", get(openapi::people))
            .route(openapi::DOCUMENT_SCHEMA, get(openapi::schema))
            .route("/docs/problems/{code}", get(openapi::problem))
            .nest("/api/v1", table(&state, &TABLE).layer(from_fn(refuse_overload)))
            .nest("/ui", table(&state, &FORMS).layer(from_fn(refuse_overload)))
            .nest("/v1", nodes::plexd_routes()),
        state,
    )
}

/// Probes and metrics alone, for a listener of their own.
pub fn probe_router(state: ServerState) -> Router {
    layered(probes(), state)
}

fn probes() -> Router<ServerState> {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::show))
}

fn layered(routes: Router<ServerState>, state: ServerState) -> Router {
    routes
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(error::on_panic))
        .layer(from_fn(error::write_problem))
        .layer(from_fn_with_state(state.clone(), metrics::count))
        .layer(from_fn_with_state(state.clone(), correlation::name))
        .with_state(state)
}

/// The routes of a table: methods of a path are merged, each with its guard.
fn table(state: &ServerState, rows: &'static [Route]) -> Router<ServerState> {
    rows.iter().fold(Router::new(), |router, route| {
        let layer = from_fn_with_state(Guard { state: state.clone(), route }, guard);
        // The guard covers the methods of the row only: others are 405 for all.
        router.route(route.path, route.handler().route_layer(layer))
    })
}

async fn unknown_route(uri: Uri) -> Rejection {
    let path = error::clip(uri.path());
    Refusal::new(
        ErrorKind::RouteNotFound,
        format!("nothing is served at `{path}`; the API begins at /api/v1"),
    )
    .into()
}

pub(crate) async fn wrong_method(method: Method, uri: Uri) -> Rejection {
    let path = error::clip(uri.path());
    Refusal::new(
        ErrorKind::MethodNotAllowed,
        format!("`{path}` does not take {method}; the Allow header names what it takes"),
    )
    .into()
}
