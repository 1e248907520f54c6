//! The composite of blueprint `local-node`: a node agent that runs as a
//! process of this machine.

use serde_json::{Value, json};
use slipway_core::blueprint::MeshRole;
use slipway_core::error::Refusal;
use slipway_core::ids::{BootstrapTokenId, ClaimToken, InstallationId};
use slipway_core::secret::Secret;
use slipway_core::snapshot::ResourceSnapshot;

use crate::cloud_init::{self, NodeConfig, RenderFailed};
use crate::composite::{
    LABEL_INSTALLATION, LABEL_PROJECT, LABEL_PROVISIONED_RESOURCE, LABEL_RESOURCE,
    RenderedComposite,
};

const API_VERSION: &str = "local.slipway.dev/v1";
const KIND: &str = "LocalNode";
/// How long a `local-node` pretends to be busy after it enrolled.
pub const PARAMETER_BUSY_SECONDS: &str = "busy_seconds";

/// What is the same for every node of an installation.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    pub installation: InstallationId,
    /// Where nodes reach this control plane.
    pub public_url: String,
    pub heartbeat_interval_ms: u64,
    pub orphan_after_ms: u64,
}

/// What goes into the injection site.
#[derive(Debug, Clone)]
pub enum Injection {
    /// A standalone node, or an object whose document is unknown.
    None,
    /// A token that was just minted.
    Fresh { id: BootstrapTokenId, token: Secret },
    /// What the live object carries, taken over to the letter.
    Verbatim { id: Option<BootstrapTokenId>, document: Secret },
}

/// Why a composite could not be rendered. Tells nothing of the token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Parameters(#[from] Refusal),
    #[error(transparent)]
    Document(#[from] RenderFailed),
}

/// The part of the object that we own, as it should be. Checks the parameter
/// values again, since the row may be older than the check.
pub fn owned(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Result<Value, Error> {
    let attempt = &snapshot.attempt;
    let values = snapshot
        .blueprint
        .parameter_schema
        .validate(attempt.parameter_values().as_map().clone())?;
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "labels": {
                LABEL_INSTALLATION: settings.installation,
                LABEL_PROJECT: attempt.project_id(),
                LABEL_RESOURCE: attempt.resource_id(),
                LABEL_PROVISIONED_RESOURCE: attempt.id(),
            },
        },
        "spec": { "parameters": values },
    }))
}

/// The whole composite.
pub fn render(
    snapshot: &ResourceSnapshot,
    namespace: &str,
    settings: &NodeSettings,
    claim_token: ClaimToken,
    injection: &Injection,
) -> Result<RenderedComposite, Error> {
    let owned = owned(snapshot, settings)?;
    let (id, document) = match injection {
        _ if snapshot.blueprint.mesh_role == MeshRole::Standalone => (None, None),
        Injection::None => (None, None),
        Injection::Verbatim { id, document } => (*id, Some(document.clone())),
        Injection::Fresh { id, token } => {
            let config = node_config(snapshot, settings);
            (Some(*id), Some(cloud_init::enrolment_document(&config, token)?))
        }
    };
    let name = snapshot.attempt.xr_name();
    Ok(RenderedComposite::assemble(namespace, name, owned, claim_token, id, document.as_ref()))
}

fn node_config(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> NodeConfig {
    let busy = snapshot.attempt.parameter_values().as_map().get(PARAMETER_BUSY_SECONDS);
    NodeConfig {
        api_url: settings.public_url.clone(),
        project_id: snapshot.resource.project_id.to_string(),
        resource_handle: snapshot.resource.handle.to_string(),
        hostname: snapshot.resource.handle.to_string(),
        heartbeat_interval_ms: settings.heartbeat_interval_ms,
        orphan_after_ms: settings.orphan_after_ms,
        busy_seconds: busy.and_then(Value::as_u64).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests;
