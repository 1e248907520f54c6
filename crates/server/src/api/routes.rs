//! The table of our own routes.

use axum::Router;
use axum::routing::{delete, get, post, put};

use super::{control, deletions, events, leaks, loops, nodes, resources, subscriptions};
use crate::state::ServerState;

pub(crate) fn routes() -> Router<ServerState> {
    Router::new()
        .route("/resources", post(resources::declare).get(resources::list))
        .route("/resources/{id}", get(resources::get).delete(resources::delete))
        .route("/resources/{id}/explain", get(resources::explain))
        .route("/resources/{id}/force-drain", post(resources::force_drain))
        .route("/resources/{id}/retry", post(resources::retry))
        .route("/nodes", get(nodes::list))
        .route("/nodes/{id}", get(nodes::get))
        .route("/deletions", get(deletions::list))
        .route("/deletions/{id}", get(deletions::get))
        .route("/events", get(events::list))
        .route("/events/stream", get(events::follow))
        .route("/subscriptions", get(subscriptions::list))
        .route("/subscriptions/{name}", delete(subscriptions::remove))
        .route("/leaks", get(leaks::list))
        .route("/leaks/find", post(leaks::find))
        .route("/leaks/{id}", get(leaks::get))
        .route("/leaks/{id}/resolve", post(leaks::resolve))
        .route("/leaks/{id}/remove", post(leaks::remove))
        .route("/loops", get(loops::list))
        .route("/control", get(control::get))
        .route("/control/freeze", put(control::freeze).delete(control::unfreeze))
        .route("/control/resume", post(control::resume))
        .route("/control/plan", get(control::plan))
}
