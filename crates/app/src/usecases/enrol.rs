//! A node enrols with its bootstrap token.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{NodeId, ProjectId};
use slipway_core::keys::{NodeKeyText, parse_public_key};
use slipway_core::rules::enrol::{self, Enrolment};
use slipway_core::secret::Secret;
use slipway_core::token::{SecretHash, TokenText};

use crate::ports::store::{self, ResourceKey};
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
}

/// What the node is told.
#[derive(Debug, Clone)]
pub struct Registered {
    pub node_id: NodeId,
    /// The bearer for every later call.
    pub key: Secret,
    /// The bare key, for agents that build the bearer themselves.
    pub key_bytes: [u8; 32],
}

const MAX_CAPABILITIES: usize = 32;

/// Consumes the token and registers the node; an error consumes nothing.
pub async fn enrol(context: &Context, input: Register) -> Result<Registered, Error> {
    let public_key = parse_public_key(&input.public_key).ok_or_else(|| {
        Refusal::new(
            ErrorKind::PublicKeyInvalid,
            "`public_key` must be 32 bytes of base64 that are not all zero",
        )
        .at("public_key")
    })?;
    let token = TokenText::parse(input.token.expose())
        .map_err(|error| Refusal::new(ErrorKind::TokenInvalid, error.to_string()).at("token"))?;
    let project_id = input
        .project_id
        .map(|text| text.parse::<ProjectId>())
        .transpose()
        .map_err(|error| Refusal::from(error).at("project_id"))?;
    let hostname = bounded("hostname", input.hostname.unwrap_or_else(|| "node".to_owned()))?;
    if input.capabilities.len() > MAX_CAPABILITIES {
        return Err(Refusal::invalid("capabilities", "must be at most 32").into());
    }
    let capabilities = input
        .capabilities
        .into_iter()
        .map(|capability| bounded("capabilities", capability))
        .collect::<Result<Vec<_>, _>>()?;
    let nonce = input.nonce.map(|nonce| bounded("nonce", nonce)).transpose()?;

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
        node_id: NodeId::new(context.entropy.uuid()),
        key_hash: SecretHash::of(&key_bytes),
    };
    let mut node_id = enrolment.node_id;
    let decided = context
        .store
        .decide(ResourceKey::Token(token.hash), &mut |snapshot| {
            let enrolled = enrol::enrol(snapshot, &enrolment)?;
            node_id = enrolled.node_id;
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
    context.wakes.wake();
    let key = NodeKeyText::mint(&context.settings.token_environment, node_id, &key_bytes);
    Ok(Registered { node_id, key, key_bytes })
}

fn bounded(field: &str, text: String) -> Result<String, Refusal> {
    if text.is_empty() || text.len() > 253 || text.chars().any(char::is_control) {
        return Err(Refusal::invalid(field, "must be 1 to 253 bytes without control characters"));
    }
    Ok(text)
}
