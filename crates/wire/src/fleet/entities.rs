//! The things of Fleet, as clients of its protocol know them. Times are RFC 3339, ids UUIDs; a value that
//! is not there is `null`, never left out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An agent; `status` is `ACTIVE` or `INACTIVE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    pub cluster_name: String,
    pub created_at: String,
    pub deleted_at: Option<String>,
    pub id: String,
    pub k8s_api_latency_ms: Option<i32>,
    pub k8s_reachable: Option<bool>,
    pub k8s_reported_at: Option<String>,
    pub last_heartbeat: Option<String>,
    pub name: String,
    pub status: String,
    pub updated_at: String,
}

/// An annotation of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentAnnotation {
    pub agent_id: String,
    pub id: String,
    pub key: String,
    pub value: String,
}

/// A label of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentLabel {
    pub agent_id: String,
    pub id: String,
    pub label: String,
}

/// A stack that somebody named for an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentTarget {
    pub agent_id: String,
    pub id: String,
    pub stack_id: String,
}

/// An agent agreed to take stacks of a generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentGeneratorRegistration {
    pub agent_id: String,
    pub generator_id: String,
    pub id: String,
    pub registered_at: String,
}

/// What an agent reported about an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentEvent {
    pub agent_id: String,
    pub created_at: String,
    pub deleted_at: Option<String>,
    pub deployment_object_id: String,
    pub event_type: String,
    pub id: String,
    pub message: Option<String>,
    pub status: String,
    pub updated_at: String,
}

/// A generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Generator {
    pub created_at: String,
    pub deleted_at: Option<String>,
    pub description: Option<String>,
    pub id: String,
    pub is_active: bool,
    pub is_system: bool,
    pub last_active_at: Option<String>,
    pub name: String,
    pub updated_at: String,
}

/// A stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stack {
    pub created_at: String,
    pub deleted_at: Option<String>,
    pub description: Option<String>,
    pub generator_id: String,
    pub id: String,
    pub name: String,
    pub updated_at: String,
}

/// An annotation of a stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StackAnnotation {
    pub id: String,
    pub key: String,
    pub stack_id: String,
    pub value: String,
}

/// A label of a stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StackLabel {
    pub id: String,
    pub label: String,
    pub stack_id: String,
}

/// Content of a stack, or a deletion marker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentObject {
    pub created_at: String,
    pub deleted_at: Option<String>,
    pub id: String,
    pub is_deletion_marker: bool,
    /// Of a marker: let go of the objects instead of deleting them. Left out if it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// The content is the text of a template, of which each agent is offered its own rendering.
    /// Left out if it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_agent: bool,
    pub sequence_id: i64,
    pub stack_id: String,
    pub submitted_at: String,
    pub updated_at: String,
    pub yaml_checksum: String,
    pub yaml_content: String,
}

/// One version of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StackTemplate {
    pub checksum: String,
    pub created_at: String,
    pub deleted_at: Option<String>,
    pub description: Option<String>,
    pub generator_id: Option<String>,
    pub id: String,
    pub name: String,
    pub parameters_schema: String,
    pub template_content: String,
    pub updated_at: String,
    pub version: i32,
}

/// An annotation of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateAnnotation {
    pub created_at: String,
    pub id: String,
    pub key: String,
    pub template_id: String,
    pub value: String,
}

/// A label of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateLabel {
    pub created_at: String,
    pub id: String,
    pub label: String,
    pub template_id: String,
}

/// A key, without its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PakSummary {
    pub id: String,
    pub name: String,
}
