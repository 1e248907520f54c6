//! The node protocol (`/v1`). Two generations of plexd exist; a server accepts
//! both bodies and answers with the union of both replies, and our own node
//! agent speaks the union as well. Unknown fields are ignored on purpose: an
//! agent may be newer than the server.

use serde::{Deserialize, Serialize};

/// The capability of a node that acknowledges a drain. A node without it is
/// deregistered at once.
pub const CAPABILITY_DRAIN: &str = "drain";

/// `POST /v1/register`. Generation A sends `token` (and the same value as
/// bearer), generation B sends `bootstrap_token` with `nonce`.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct RegisterRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_token: Option<String>,
    /// 32 bytes, base64.
    #[serde(default)]
    pub public_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_handle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_resource_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
}

impl std::fmt::Debug for RegisterRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegisterRequest")
            .field("public_key", &self.public_key)
            .field("hostname", &self.hostname)
            .field("project_id", &self.project_id)
            .field("resource_handle", &self.resource_handle)
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

/// The union of both generations' replies (201).
#[derive(Clone, Serialize, Deserialize)]
pub struct RegisterReply {
    pub node_id: String,
    pub mesh_ip: String,
    /// ed25519, 32 bytes, base64.
    pub signing_public_key: String,
    pub signing_key_id: String,
    /// Generation A: the bearer string for every later call.
    pub node_secret_key: String,
    /// Generation B: 32 bytes, base64; the bearer is derived from it.
    pub nsk: String,
    pub peers: Vec<serde_json::Value>,
    pub peer_snapshot: Vec<serde_json::Value>,
    pub domain_mesh_cidr: String,
}

impl std::fmt::Debug for RegisterReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegisterReply").field("node_id", &self.node_id).finish_non_exhaustive()
    }
}

/// `POST /v1/nodes/{id}/heartbeat`; every field may be missing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HeartbeatRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_checksum: Option<String>,
}

/// The answer to a heartbeat. `drain` is only ever set for nodes that declared
/// [`CAPABILITY_DRAIN`]; plexd does not know the field and ignores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatReply {
    pub accepted_at: String,
    pub reconcile: bool,
    pub rotate_keys: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainRequest>,
}

/// The server asks the node to finish what it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRequest {
    pub drain_id: String,
    pub requested_at: String,
}

/// `POST /v1/nodes/{id}/drain`: this drain is complete. 204.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainAcknowledgement {
    pub drain_id: String,
}

/// The error body of the node protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeError {
    pub code: String,
    pub message: String,
}
