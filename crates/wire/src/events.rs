//! Events and subscriptions.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One lifecycle event, in the order of its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The stable message id.
    pub id: String,
    pub position: i64,
    #[serde(rename = "type")]
    pub event_type: String,
    /// The attempt that it is about.
    pub aggregate_id: String,
    /// The resource of the attempt, and its handle. Not there if the subject has none, or
    /// its rows cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    pub revision: i64,
    pub occurred_at: String,
    /// What a retry changed in the declaration, `version` or `parameters.<name>`; in the
    /// Requested event of the attempt that followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// What it announces was not proven outside: a person abandoned it. Only then in the
    /// document.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
    pub payload: Value,
}

/// One durable subscriber of all events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Subscription {
    pub id: String,
    pub name: String,
    /// Everything up to here was delivered.
    pub position: i64,
    /// The last position of all events.
    pub last_position: i64,
    /// Deliveries that failed in a row, and what the last one said.
    pub failures: i32,
    pub last_error: Option<String>,
    /// When the cursor last moved.
    pub published_at: Option<String>,
    /// No delivery is attempted before this.
    pub due_at: String,
    /// The replica that delivers just now.
    pub claimed_by: Option<String>,
}
