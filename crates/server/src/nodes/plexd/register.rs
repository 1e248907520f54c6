//! Registration of a node. Both generations of bodies are parsed as one, and
//! the reply is the union of both, so each generation finds its fields.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use data_encoding::BASE64;
use slipway_app::nodes::enrol::{self, Register};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::secret::Secret;
use slipway_wire::nodes::plexd::{RegisterReply, RegisterRequest};

use super::convert;
use crate::error::Rejection;
use crate::request::{bearer, parse_json, read_body};
use crate::state::ServerState;

pub(super) async fn register(
    State(state): State<ServerState>,
    request: Request,
) -> Result<(StatusCode, Json<RegisterReply>), Rejection> {
    let in_header = bearer(request.headers()).map(str::to_owned);
    let body: RegisterRequest = parse_json(&read_body(request).await?)?;
    let token = choose_token(&body, in_header)?;
    let (capabilities, reported) = convert::capabilities(body.capabilities);
    let input = Register {
        token: Secret::new(token),
        public_key: body.public_key,
        hostname: body.hostname,
        capabilities,
        nonce: body.nonce,
        project_id: body.project_id,
        resource_handle: body.resource_handle.filter(|handle| !handle.is_empty()),
        requested_resource_id: body.requested_resource_id,
        reported,
    };
    let registered = enrol::enrol(&state.context, input).await?;
    let peers = convert::peers(&registered.mesh);
    let address = registered.mesh.node.mesh.ip.to_string();
    let reply = RegisterReply {
        node_id: registered.node_id.to_string(),
        mesh_ip: address,
        signing_public_key: state.node_settings.signing_public_key.clone(),
        signing_key_id: state.node_settings.signing_key_id.clone(),
        node_secret_key: registered.key.expose().to_owned(),
        nsk: BASE64.encode(&registered.key_bytes),
        peers: peers.clone(),
        peer_snapshot: peers,
        domain_mesh_cidr: registered.mesh.cidr.to_string(),
    };
    Ok((StatusCode::CREATED, Json(reply)))
}

/// The newer generation's field comes first and the bearer last: a proxy may
/// have set its own bearer.
fn choose_token(body: &RegisterRequest, in_header: Option<String>) -> Result<String, Refusal> {
    let given = [body.bootstrap_token.clone(), body.token.clone(), in_header];
    given.into_iter().flatten().find(|token| !token.is_empty()).ok_or_else(|| {
        Refusal::new(
            ErrorKind::TokenInvalid,
            "no bootstrap token was sent; put it into `bootstrap_token`, `token` or the bearer",
        )
        .at("bootstrap_token")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_wherever_a_generation_puts_it() {
        let text = |value: &str| Some(value.to_owned());
        let newer = RegisterRequest { bootstrap_token: text("b"), ..RegisterRequest::default() };
        let older = RegisterRequest { token: text("a"), ..RegisterRequest::default() };
        let none = RegisterRequest::default();
        assert_eq!(choose_token(&newer, text("h")).unwrap(), "b");
        assert_eq!(choose_token(&older, text("h")).unwrap(), "a");
        assert_eq!(choose_token(&none, text("h")).unwrap(), "h");
        for header in [None, text("")] {
            assert_eq!(choose_token(&none, header).unwrap_err().kind, ErrorKind::TokenInvalid);
        }
    }
}
