//! Blockers: structured reasons why something does not advance.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Why something does not advance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Blocker {
    pub code: String,
    pub message: String,
    pub since: String,
    /// Who can do something about it: `operator` or `platform`.
    pub owner: String,
    pub evidence: Value,
    pub next_retry_at: Option<String>,
    pub remedies: Vec<Remedy>,
}

/// A way out of a blocker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Remedy {
    pub action: String,
    pub command: Option<String>,
    /// Least role that may use it.
    pub role: String,
}
