//! What is the same for every composite of an installation.

use slipway_core::ids::InstallationId;

/// What a renderer is told by the configuration.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    pub installation: InstallationId,
    /// Where nodes reach this control plane.
    pub public_url: String,
    pub heartbeat_interval_ms: u64,
    pub orphan_after_ms: u64,
    /// The image of the node agent, for what runs it as a container. Without it
    /// nothing can be rendered that names one.
    pub node_image: Option<String>,
}
