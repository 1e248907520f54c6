//! The table of our own routes.

use axum::Router;
use axum::routing::{delete, get, post, put};

use super::{
    blueprints, clouds, clusters, control, credentials, deletions, events, labels, leaks, loops,
    nodes, projects, resources, subscriptions,
};
use crate::state::ServerState;

pub(crate) fn routes() -> Router<ServerState> {
    Router::new()
        .route("/resources", post(resources::declare).get(resources::list))
        .route(
            "/resources/{id}",
            get(resources::get).patch(resources::relabel).delete(resources::delete),
        )
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
        .merge(catalog())
}

/// What has to be there before anything can be declared.
fn catalog() -> Router<ServerState> {
    Router::new()
        .route("/projects", post(projects::create).get(projects::list))
        .route(
            "/projects/{project}",
            get(projects::get).patch(projects::update).delete(projects::delete),
        )
        .route("/projects/{project}/credentials", get(credentials::assigned))
        .route(
            "/projects/{project}/credentials/{credential}",
            put(credentials::assign).delete(credentials::withdraw),
        )
        .route(
            "/projects/{project}/cluster",
            get(clusters::assignment).put(clusters::assign).delete(clusters::withdraw),
        )
        .route("/clouds", post(clouds::create).get(clouds::list))
        .route("/clouds/{cloud}", get(clouds::get).patch(clouds::update).delete(clouds::delete))
        .route("/credentials", post(credentials::create).get(credentials::list))
        .route(
            "/credentials/{id}",
            get(credentials::get).patch(credentials::update).delete(credentials::delete),
        )
        .route("/blueprints", post(blueprints::create).get(blueprints::list))
        .route("/blueprints/{blueprint}", get(blueprints::get).patch(blueprints::update))
        .route(
            "/blueprints/{blueprint}/versions",
            post(blueprints::publish).get(blueprints::versions),
        )
        .route("/blueprints/{blueprint}/versions/{version}", get(blueprints::version))
        .route("/blueprints/{blueprint}/versions/{version}/retire", post(blueprints::retire))
        .route("/labels", post(labels::define).get(labels::list))
        .route("/labels/{label}", get(labels::get).patch(labels::update).delete(labels::delete))
        .route("/clusters", post(clusters::create).get(clusters::list))
        .route("/clusters/{cluster}", get(clusters::get))
        .route("/cluster-assignments", get(clusters::assignments))
}
