//! The error document: `application/problem+json` (RFC 9457) with the stable
//! `code` that clients branch on.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Media type of an error answer.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// What every failed request answers with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI reference that identifies the kind of problem: `/docs/problems/<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What happened, to what, and what to do about it.
    pub detail: String,
    /// The path that was asked for.
    pub instance: String,
    /// Stable, snake_case. Clients branch on this and on nothing else.
    pub code: String,
    /// The same text as `detail`, for clients that expect this name.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
    /// Every fault of the input, the one of `code` and `message` first. Empty if no
    /// field is at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Names this one answer in the server's log.
    pub correlation_id: String,
}

/// One fault of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The path of the field, such as `parameters.size`; empty for the whole body.
    pub field: String,
    /// Stable, snake_case.
    pub code: String,
    /// What is wrong, and what to do about it.
    pub message: String,
}
