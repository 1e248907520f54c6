//! The whole table, and the router that is built from it.

use std::sync::LazyLock;

use axum::Router;
use axum::middleware::from_fn_with_state;

use super::guard::{Guard, guard};
use super::row::Route;
use crate::state::ServerState;
use crate::{access, broker, catalog, deletion, events, nodes, operations, placement};

/// Every route of ours.
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

/// The router of the table: methods of one path merged, each behind its guard.
pub(crate) fn router(state: &ServerState) -> Router<ServerState> {
    TABLE.iter().fold(Router::new(), |router, route| {
        let layer = from_fn_with_state(Guard { state: state.clone(), route }, guard);
        // The guard covers only the methods of the row: any other is 405 to everybody.
        router.route(route.path, route.handler().route_layer(layer))
    })
}
