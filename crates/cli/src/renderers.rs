//! What is rendered and checked on this side of the API. The binary brings it:
//! this crate knows the API by its documents only.

use slipway_wire::catalog::{CompositeType, PublishVersion};

/// Functions of the renderer.
#[derive(Debug, Clone, Copy)]
pub struct Renderers {
    /// What is wrong with a version for engine crossplane, by slug and content;
    /// the same that the server would say.
    pub faults: fn(&str, &PublishVersion) -> Vec<String>,
    /// The documents of a DaemonSet as one YAML stream. Holds the token.
    pub daemon_set: fn(&DaemonSet<'_>) -> Result<String, String>,
    /// The role that the control plane's account needs for the composites of a
    /// blueprint, by slug, as YAML.
    pub role: fn(&str, &CompositeType) -> Result<String, String>,
}

/// What a DaemonSet is rendered from.
#[derive(Clone, Copy)]
pub struct DaemonSet<'a> {
    pub api_url: &'a str,
    pub project_id: &'a str,
    pub resource_handle: &'a str,
    /// The machine that the pod is held to: a token enrols one node.
    pub hostname: &'a str,
    pub namespace: &'a str,
    pub image: &'a str,
    /// The token as a variable and not by a Secret.
    pub by_environment: bool,
    pub token: &'a str,
}

impl std::fmt::Debug for DaemonSet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DaemonSet").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}
