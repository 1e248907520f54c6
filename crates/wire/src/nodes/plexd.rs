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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Accepted and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
}

/// What a node can do: names (our agent), or a description of the agent with
/// its actions and hooks (generation A).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Capabilities {
    Names(Vec<String>),
    Described(DescribedCapabilities),
}

/// Lists may be `null` as well as missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DescribedCapabilities {
    pub binary: Option<BinaryInfo>,
    pub builtin_actions: Option<Vec<NamedCapability>>,
    pub hooks: Option<Vec<NamedCapability>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BinaryInfo {
    pub version: Option<String>,
    pub checksum: Option<String>,
}

/// Of an action or a hook only the name is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedCapability {
    pub name: String,
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
    /// Generation A.
    pub peers: Vec<Peer>,
    /// Generation B; the same.
    pub peer_snapshot: Vec<Peer>,
    pub domain_mesh_cidr: String,
}

/// Another node of the project, with the fields of both generations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peer {
    /// Generation A's name of `node_id`.
    pub id: String,
    pub node_id: String,
    /// 32 bytes, base64.
    pub public_key: String,
    pub mesh_ip: String,
    pub hostname: String,
    /// Where it can be reached from outside the mesh: not known here.
    pub endpoint: String,
    /// Its own address and nothing behind it.
    pub allowed_ips: Vec<String>,
    /// Always empty: no key is shared by two nodes.
    pub psk: String,
}

/// `GET /v1/nodes/{id}/state`: the fields of both generations. A block that
/// this server has nothing for is empty for A and `null` for B, which tells
/// each that nothing is wanted of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StateReply {
    pub peers: Vec<Peer>,

    pub policies: Vec<serde_json::Value>,
    pub signing_keys: SigningKeys,
    pub metadata: serde_json::Map<String, serde_json::Value>,
    pub data: Vec<serde_json::Value>,
    pub secret_refs: Vec<serde_json::Value>,

    pub reachability: ReachabilityState,
    pub policy: Option<serde_json::Value>,
    pub bridge: Option<serde_json::Value>,
    pub state: Option<serde_json::Value>,
    pub reports: Option<serde_json::Value>,
    pub executions: Vec<serde_json::Value>,
    pub sessions: Vec<serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKeys {
    /// ed25519, 32 bytes, base64.
    pub current: String,
}

/// The reachability of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachabilityState {
    /// `healthy`, `stale`, `unreachable`, or `never_reported`.
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_at: Option<String>,
    pub changed_at: String,
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

/// The server asks the node to finish its work.
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
