//! API keys and the audit. The text of a key is in the answer to the request that made
//! it and nowhere else.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// `POST /api/v1/keys`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    /// How the audit names whoever uses it.
    pub name: String,
    /// `viewer`, `operator` or `admin`.
    #[schema(pattern = "^(viewer|operator|admin)$")]
    pub role: String,
    /// The person or program that holds it; as the key that makes it, if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The only project that it reaches: its name, its id or the beginning of it; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// It never expires if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// `POST /api/v1/keys/{id}/rotate`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateKey {
    /// How long the previous text stays valid.
    #[serde(default)]
    pub overlap_seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKey {
    pub id: String,
    pub name: String,
    /// The person or program that holds it.
    #[serde(default)]
    pub owner: String,
    pub role: String,
    /// The name of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub project_id: Option<String>,
    /// `usable`, `expired`, `revoked`, or `project_deleted`: its project is gone.
    pub state: String,
    pub created_at: String,
    pub created_by: Option<String>,
    pub expires_at: Option<String>,
    pub rotated_at: Option<String>,
    pub rotated_by: Option<String>,
    /// Until when the text before the last rotation is valid, if it still is.
    pub previous_until: Option<String>,
    pub revoked_at: Option<String>,
    pub revision: i64,
}

/// The answer to creating and rotating.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyWithText {
    #[serde(flatten)]
    pub about: ApiKey,
    /// The key itself, this once. Null in the answer to a repeated request.
    pub key: Option<String>,
}

impl fmt::Debug for ApiKeyWithText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyWithText").field("about", &self.about).finish_non_exhaustive()
    }
}

/// One entry of the audit; in an export, one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub id: String,
    pub at: String,
    /// `key:<name>`, `node:<id>`, `loop:<name>` or `replica:<name>`.
    pub actor: String,
    /// The host name of an actor that is a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_name: Option<String>,
    /// `<kind>.<verb>`, such as `resource.declare`.
    pub verb: String,
    pub kind: String,
    /// The name of what was changed, also after its deletion; of an attempt and a token that of their
    /// resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub subject_id: String,
    /// The name of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub project_id: Option<String>,
    pub reason: Option<String>,
    pub details: Value,
    pub correlation_id: Option<String>,
}
