//! The table of the node protocol's routes.

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{get, post};

use super::{error, nodes, register};
use crate::router::wrong_method;
use crate::serve::refuse_overload;
use crate::state::ServerState;

pub(crate) fn routes() -> Router<ServerState> {
    Router::new()
        .route("/register", post(register::register))
        .route("/nodes/{id}/heartbeat", post(nodes::heartbeat))
        .route("/nodes/{id}/state", get(nodes::state))
        .route("/nodes/{id}/drain", post(nodes::drain))
        .route("/nodes/{id}/deregister", post(nodes::deregister))
        .fallback(error::not_provisioned)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn(refuse_overload))
        .layer(from_fn(error::write))
}
