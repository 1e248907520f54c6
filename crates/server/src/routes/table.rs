//! The table of all rows, and the router built from it.

use std::sync::LazyLock;

use axum::Router;
use axum::middleware::from_fn_with_state;

use super::guard::{Guard, guard};
use super::row::Route;
use crate::state::ServerState;
use crate::{access, broker, catalog, deletion, events, nodes, operations, placement};

/// Every route of our API.
pub static TABLE: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let rooms = [
        broker::rows(),
        nodes::rows(),
        catalog::rows(),
        placement::rows(),
        deletion::rows(),
        access::rows(),
        events::rows(),
        operations::rows(),
    ];
    rooms.into_iter().flatten().collect()
});

/// The router of the table: methods of a path are merged, each with its guard.
pub(crate) fn router(state: &ServerState) -> Router<ServerState> {
    TABLE.iter().fold(Router::new(), |router, route| {
        let layer = from_fn_with_state(Guard { state: state.clone(), route }, guard);
        // The guard covers the methods of the row only: others are 405 for all.
        router.route(route.path, route.handler().route_layer(layer))
    })
}
