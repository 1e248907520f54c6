//! Nodes and bootstrap tokens in our API; [`plexd`] is the protocol of the nodes. The text
//! of a token is in the answer to the request that issued it and nowhere else.

pub mod plexd;

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An enrolled node agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub id: String,
    /// The name of its project; left out in the document of its resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub project_id: String,
    /// The handle of its resource; left out in the document of its resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    pub resource_id: String,
    pub provisioned_resource_id: String,
    pub hostname: String,
    pub capabilities: Vec<String>,
    /// Its address in the mesh of the project, also the one it left with.
    #[serde(default)]
    pub mesh_ip: Option<String>,
    /// What the agent says of itself.
    #[serde(default)]
    pub version: Option<String>,
    #[serde(default)]
    pub checksum: Option<String>,
    #[serde(default)]
    pub status: Option<String>,
    pub registered: bool,
    /// `unknown`, `healthy`, `stale` or `unreachable`.
    pub reachability: String,
    /// How long nothing was heard of a registered node that is `stale` or `unreachable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_seconds: Option<u64>,
    pub registered_at: String,
    pub last_heartbeat_at: Option<String>,
    pub drain_requested_at: Option<String>,
    pub deregistered_at: Option<String>,
    /// `acknowledged`, `immediate`, `substrate_absent`, `forced`, `left` or `reenrolled`.
    pub deregistered_how: Option<String>,
    pub deregistered_by: Option<String>,
    pub deregistered_reason: Option<String>,
}

/// `POST /api/v1/resources/{id}/force-drain`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForceDrain {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

/// `POST /api/v1/resources/{id}/confirm-gone`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmGone {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

/// `POST /api/v1/resources/{id}/tokens`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IssueToken {
    #[serde(default = "node")]
    #[schema(pattern = "^(node|bridge)$")]
    pub kind: String,
    /// From 300 to 86400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// `POST /api/v1/resources/{id}/reenrol`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reenrol {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    /// From 300 to 86400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

fn node() -> String {
    "node".to_owned()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    pub token_id: String,
    pub project_id: String,
    /// The handle of the resource that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    pub provisioned_resource_id: String,
    pub kind: String,
    /// `usable`, `consumed`, `revoked` or `expired`.
    pub state: String,
    pub issued_at: String,
    /// Null if a loop issued it, with an apply.
    pub issued_by: Option<String>,
    pub expires_at: String,
    pub consumed_at: Option<String>,
    pub consumed_by_node_id: Option<String>,
    pub revoked_at: Option<String>,
}

/// The answer to issuing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IssuedToken {
    #[serde(flatten)]
    pub about: Token,
    /// The token itself, this once. Null in the answer to a repeated request.
    pub token: Option<String>,
    /// Where an agent reaches this server, and the authorities (PEM) that it has to trust
    /// besides those of its machine.
    #[serde(default)]
    pub api_url: Option<String>,
    #[serde(default)]
    pub authorities: Option<String>,
}

impl fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedToken").field("about", &self.about).finish_non_exhaustive()
    }
}
