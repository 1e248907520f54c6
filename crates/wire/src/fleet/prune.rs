//! Prunes that an agent refuses, and their confirmation: ours, beside the published protocol.
//!
//! To an agent a stack that is absent from an answer means "remove it". If that would remove more
//! than 50 objects, or more than 20 % of what the agent holds, it waits until a person confirms the
//! digest of exactly these objects.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `PUT /agents/{id}/prune-refusal`: what an agent would remove and does not. One without objects
/// ends the refusal, and with it what was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PruneRefusal {
    /// SHA-256, in hexadecimal, over the sorted references of the objects, a line each.
    pub digest: String,
    /// How many objects would be removed.
    pub objects: i64,
    /// The stacks that the answer lacks.
    pub stacks: Vec<String>,
    /// How many objects the agent holds.
    pub total: i64,
}

/// `POST /agents/{id}/prune-confirmations`; without a digest, what the agent refuses now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmPruneRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// `GET /agents/{id}/prune-confirmations` lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PruneConfirmation {
    pub confirmed_at: String,
    pub digest: String,
}
