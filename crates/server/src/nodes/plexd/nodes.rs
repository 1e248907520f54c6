//! Calls of an enrolled node. Each carries the node's own key; the key of
//! another node is rejected.

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use slipway_app::access::authenticate;
use slipway_app::nodes::node;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DrainId, InvalidId, NodeId};
use slipway_wire::nodes::plexd::{DrainAcknowledgement, DrainRequest, HeartbeatReply, StateReply};

use super::convert;
use crate::error::Rejection;
use crate::request::{bearer, parse_json, read_body};
use crate::state::ServerState;

/// The node in the path, authenticated by its own key and within its rate.
#[derive(Debug)]
pub(super) struct AuthenticatedNode(NodeId);

impl FromRequestParts<ServerState> for AuthenticatedNode {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, Rejection> {
        let key = bearer(&parts.headers).unwrap_or_default();
        let node = authenticate::node_key(&state.context, key).await?;
        let path = Path::<String>::from_request_parts(parts, state).await.ok();
        admit(state, node, path.as_ref().map_or("", |Path(id)| id))?;
        Ok(Self(node))
    }
}

/// Admits the node whose key was sent, if it is the one in the path and within its rate.
pub(super) fn admit(state: &ServerState, node: NodeId, in_path: &str) -> Result<(), Refusal> {
    if in_path.parse() != Ok(node) {
        return Err(Refusal::new(
            ErrorKind::Unauthenticated,
            "the key belongs to another node than the one in the path",
        ));
    }
    state.node_rates.take(node)
}

/// Stores what the body reports, as far as it can be parsed. Nothing in the
/// body can invalidate the heartbeat: that the node is alive is what counts.
pub(super) async fn heartbeat(
    State(state): State<ServerState>,
    AuthenticatedNode(id): AuthenticatedNode,
    request: Request,
) -> Result<Json<HeartbeatReply>, Rejection> {
    let body = read_body(request).await?;
    let answer = node::heartbeat(&state.context, id, &convert::reported(&body)).await?;
    Ok(Json(HeartbeatReply {
        accepted_at: answer.accepted_at.to_string(),
        reconcile: false,
        rotate_keys: false,
        drain: answer.drain.map(|drain| DrainRequest {
            drain_id: drain.id.to_string(),
            requested_at: drain.requested_at.to_string(),
        }),
    }))
}

/// The desired state of the node: its peers.
pub(super) async fn state(
    State(state): State<ServerState>,
    AuthenticatedNode(id): AuthenticatedNode,
) -> Result<Json<StateReply>, Rejection> {
    let mesh = node::peers_of(&state.context, id).await?;
    let key = &state.node_settings.signing_public_key;
    Ok(Json(convert::state(&mesh, key, state.context.clock.now())))
}

/// This revokes the node's key, so a repeated call is answered with 401.
pub(super) async fn drain(
    State(state): State<ServerState>,
    AuthenticatedNode(id): AuthenticatedNode,
    request: Request,
) -> Result<StatusCode, Rejection> {
    let body: DrainAcknowledgement = parse_json(&read_body(request).await?)?;
    let drain_id: DrainId =
        body.drain_id.parse().map_err(|error: InvalidId| Refusal::from(error).at("drain_id"))?;
    node::acknowledge_drain(&state.context, id, drain_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A node that is not registered any more gets the same answer: its agent forgets its
/// identity only then.
pub(super) async fn deregister(
    State(state): State<ServerState>,
    Path(in_path): Path<String>,
    request: Request,
) -> Result<StatusCode, Rejection> {
    let key = bearer(request.headers()).unwrap_or_default();
    let (id, registered) = authenticate::node_key_of_any(&state.context, key).await?;
    admit(&state, id, &in_path)?;
    read_body(request).await?;
    if registered {
        node::leave(&state.context, id).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
