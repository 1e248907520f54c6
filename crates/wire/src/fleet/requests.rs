//! What clients send, and answers that only a request gets. Fields that nobody knows are ignored, as
//! clients of the protocol expect.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::entities::{Agent, Generator};

/// `POST /agents`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateAgentRequest {
    pub cluster_name: String,
    #[serde(default)]
    pub generator_ids: Vec<String>,
    pub name: String,
}

/// The new agent, and the text of its key, which is shown once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateAgentResponse {
    pub agent: Agent,
    pub initial_pak: String,
}

/// `POST /agents/{id}/annotations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewAgentAnnotation {
    pub agent_id: String,
    pub key: String,
    pub value: String,
}

/// `POST /agents/{id}/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewAgentEvent {
    pub agent_id: String,
    pub deployment_object_id: String,
    pub event_type: String,
    #[serde(default)]
    pub message: Option<String>,
    pub status: String,
}

/// `POST /agents/{id}/labels`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewAgentLabel {
    pub agent_id: String,
    pub label: String,
}

/// `POST /agents/{id}/targets`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewAgentTarget {
    pub agent_id: String,
    pub stack_id: String,
}

/// `POST` and `DELETE /generators/{id}/register`; an agent leaves its id out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentRegistrationBody {
    #[serde(default)]
    pub agent_id: Option<String>,
}

/// `POST /generators`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewGenerator {
    #[serde(default)]
    pub description: Option<String>,
    pub name: String,
}

/// The generator, and the text of its key, which is shown once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateGeneratorResponse {
    pub generator: Generator,
    pub pak: String,
}

/// `POST /stacks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewStack {
    #[serde(default)]
    pub description: Option<String>,
    pub generator_id: String,
    pub name: String,
}

/// `POST /stacks/{id}/annotations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewStackAnnotation {
    pub key: String,
    pub stack_id: String,
    pub value: String,
}

/// `POST /stacks/{id}/deployment-objects`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateDeploymentObjectRequest {
    #[serde(default)]
    pub is_deletion_marker: bool,
    pub yaml_content: String,
}

/// `POST /templates`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateTemplateRequest {
    #[serde(default)]
    pub description: Option<String>,
    pub name: String,
    pub parameters_schema: String,
    pub template_content: String,
}

/// `PUT /templates/{id}`, which makes a new version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UpdateTemplateRequest {
    #[serde(default)]
    pub description: Option<String>,
    pub parameters_schema: String,
    pub template_content: String,
}

/// `POST /templates/{id}/annotations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AddAnnotationRequest {
    pub key: String,
    pub value: String,
}

/// `POST /stacks/{id}/deployment-objects/from-template`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateInstantiationRequest {
    pub parameters: Value,
    pub template_id: String,
}

/// `POST /agents/{id}/heartbeat`; the body may be empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatReport {
    #[serde(default)]
    pub k8s_api_latency_ms: Option<i32>,
    #[serde(default)]
    pub k8s_reachable: Option<bool>,
}

/// `PATCH /agents/{id}/health-status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HealthStatusUpdate {
    pub deployment_objects: Vec<DeploymentObjectHealthUpdate>,
}

/// The health of one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentObjectHealthUpdate {
    pub checked_at: String,
    pub id: String,
    pub status: String,
    #[serde(default)]
    pub summary: Option<HealthSummary>,
}

/// What an agent saw of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HealthSummary {
    pub conditions: Vec<String>,
    pub pods_ready: i32,
    pub pods_total: i32,
    #[serde(default)]
    pub resources: Vec<ResourceHealth>,
}

/// One Kubernetes object of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceHealth {
    pub kind: String,
    #[serde(default)]
    pub message: Option<String>,
    pub name: String,
    pub namespace: String,
    pub ready: bool,
}

/// `POST /auth/pak`: whom the key speaks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuthResponse {
    pub admin: bool,
    #[serde(default)]
    pub agent: Option<String>,
    #[serde(default)]
    pub generator: Option<String>,
    pub readonly: bool,
}
