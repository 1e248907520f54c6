//! What all composites of an installation have in common.

use slipway_core::ids::InstallationId;

/// What a renderer gets from the configuration.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    pub installation: InstallationId,
    /// Where nodes reach this control plane.
    pub public_url: String,
    pub heartbeat_interval_ms: u64,
    pub orphan_after_ms: u64,
    /// The image of the node agent. Without it, nothing can be rendered that
    /// runs the agent as a container.
    pub node_image: Option<String>,
    /// The authorities that nodes trust instead of their machine's, in PEM.
    pub authorities: Option<String>,
}
