//! A node enrols with its bootstrap token, and receives its address in the mesh.

use std::str::FromStr;

use slipway_core::access::key_text::{NodeKeyText, parse_public_key};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{NodeId, ProjectId, ResourceId};
use slipway_core::nodes::enrol::{self, Enrolment};
use slipway_core::nodes::node::Reported;
use slipway_core::nodes::token::{SecretHash, TokenText};
use slipway_core::secret::Secret;

use crate::nodes::node::peers_of;
use crate::nodes::port::MeshView;
use crate::ports::store;
use crate::{Context, Error};

/// What a node sent, unchecked.
#[derive(Debug, Clone)]
pub struct Register {
    pub token: Secret,
    pub public_key: String,
    pub hostname: Option<String>,
    pub capabilities: Vec<String>,
    pub nonce: Option<String>,
    pub project_id: Option<String>,
    pub resource_handle: Option<String>,
    pub requested_resource_id: Option<String>,
    pub reported: Reported,
}

/// The answer to the node.
#[derive(Debug, Clone)]
pub struct Registered {
    pub node_id: NodeId,
    /// The bearer for every later call.
    pub key: Secret,
    /// The bare key, for agents that build the bearer themselves.
    pub key_bytes: [u8; 32],
    pub mesh: MeshView,
}

const MAX_CAPABILITIES: usize = 32;

/// Consumes the token and registers the node; an error consumes nothing.
pub async fn enrol(context: &Context, input: Register) -> Result<Registered, Error> {
    let mut resource = None;
    let enrolled = register(context, input, &mut resource).await;
    // The agent gives up, and its own log is on a machine that nobody may reach.
    if let Err(Error { refusal, internal: None }) = &enrolled {
        let code = refusal.kind.code();
        match resource {
            Some((resource_id, resource)) => {
                tracing::warn!(code, %resource, %resource_id, "a registration was refused");
            }
            None => tracing::info!(code, "a registration was refused"),
        }
    }
    enrolled
}

/// `resource` becomes the one that the token belongs to, also if it refuses the node.
async fn register(
    context: &Context,
    input: Register,
    resource: &mut Option<(ResourceId, String)>,
) -> Result<Registered, Error> {
    let public_key = parse_public_key(&input.public_key).ok_or_else(|| {
        Refusal::new(
            ErrorKind::PublicKeyInvalid,
            "`public_key` must be 32 bytes of base64 that are not all zero",
        )
        .at("public_key")
    })?;
    let token = TokenText::parse(input.token.expose())
        .map_err(|error| Refusal::new(ErrorKind::TokenInvalid, error.to_string()).at("token"))?;
    let project_id = identity::<ProjectId>("project_id", input.project_id.as_deref())?;
    let requested_resource_id =
        identity::<ResourceId>("requested_resource_id", input.requested_resource_id.as_deref())?;
    // Newer agents send no host name; their resource handle serves as one.
    let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let hostname = said(&input.hostname).or_else(|| said(&input.resource_handle));
    let hostname = bounded("hostname", hostname.unwrap_or_else(|| "node".to_owned()))?;
    if input.capabilities.len() > MAX_CAPABILITIES {
        return Err(invalid("capabilities", "must be at most 32").into());
    }
    let capabilities = input
        .capabilities
        .into_iter()
        .map(|capability| bounded("capabilities", capability))
        .collect::<Result<Vec<_>, _>>()?;
    let nonce = said(&input.nonce).map(|nonce| bounded("nonce", nonce)).transpose()?;

    let mut key_bytes = [0; 32];
    context.entropy.fill(&mut key_bytes);
    let enrolment = Enrolment {
        token_hash: token.hash,
        kind: token.kind,
        public_key,
        hostname,
        capabilities,
        nonce,
        project_id,
        resource_handle: input.resource_handle,
        requested_resource_id,
        reported: input.reported,
        node_id: NodeId::new(context.entropy.uuid()),
        key_hash: SecretHash::of(&key_bytes),
    };
    let (mut node_id, mut enrolled_for) = (enrolment.node_id, None);
    let found = resource;
    let nonce = enrolment.nonce.as_deref();
    let decided = context
        .stores
        .nodes
        .decide_enrolment(token.hash, nonce, &public_key, &mut |snapshot| {
            let named = &snapshot.resource.resource;
            *found = Some((named.id, named.handle.to_string()));
            let enrolled = enrol::enrol(snapshot, &enrolment)?;
            node_id = enrolled.node_id;
            let ResourceSnapshot { resource, attempt, .. } = &snapshot.resource;
            enrolled_for = Some((resource.id, attempt.id()));
            Ok(enrolled.commit)
        })
        .await;
    match decided {
        Err(store::Error::NotFound { .. }) => {
            return Err(Refusal::new(
                ErrorKind::TokenInvalid,
                "the bootstrap token is unknown here; it was not issued by this installation",
            )
            .at("token")
            .into());
        }
        other => other?,
    }
    if let Some((resource_id, attempt_id)) = enrolled_for {
        tracing::info!(%node_id, %resource_id, %attempt_id, "a node enrolled");
    }
    context.wakes.wake();
    // If this fails, the node enrols again and is answered again.
    let mesh = peers_of(context, node_id).await?;
    let key = NodeKeyText::mint(&context.settings.token_environment, node_id, &key_bytes);
    Ok(Registered { node_id, key, key_bytes, mesh })
}

fn bounded(field: &str, text: String) -> Result<String, Refusal> {
    if text.is_empty() || text.len() > 253 || text.chars().any(char::is_control) {
        return Err(invalid(field, "must be 1 to 253 bytes without control characters"));
    }
    Ok(text)
}

/// Parses an optional id; an empty text counts as none.
fn identity<T: FromStr>(field: &str, text: Option<&str>) -> Result<Option<T>, Refusal> {
    let named = text.filter(|text| !text.is_empty()).map(str::parse).transpose();
    named.map_err(|_| invalid(field, "must be an id in the form of a UUID"))
}

/// The protocol has its own status for a well-formed body with invalid values.
fn invalid(field: &str, problem: &str) -> Refusal {
    Refusal::new(ErrorKind::RegistrationInvalid, format!("`{field}` {problem}")).at(field)
}
