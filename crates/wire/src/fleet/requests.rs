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
    /// Of this server: name or id; `default`, or the caller's own, if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
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
    /// Of this server: name or id; `default`, or the caller's own, if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Of this server: whether its objects may have Secrets with values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts_secrets: Option<bool>,
    /// Of this server: how long what is deleted of it can be restored; as the settings of
    /// deletions say if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_seconds: Option<u64>,
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
    /// Of this server: the generator that owns it; without one it is for all of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_id: Option<String>,
    /// Of this server: name or id; `default`, or the caller's own, if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatReport {
    /// What the agent can do beyond the published protocol, such as `keep`. Left out if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
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
    /// Which control plane answers. Left out for clients that do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<String>,
    pub readonly: bool,
}

/// `PUT /agents/{id}`. The other fields of an agent are accepted as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UpdateAgent {
    #[serde(default)]
    pub cluster_name: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    /// `ACTIVE` or `INACTIVE`.
    #[serde(default)]
    pub status: Option<String>,
}

/// `POST /agents/{id}/rotate-pak`: the text of the key is shown once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentKey {
    pub agent: Agent,
    pub pak: String,
}

/// `PUT /generators/{id}`. The other fields of a generator are accepted as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UpdateGenerator {
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    /// Of this server: whether its objects may have Secrets with values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts_secrets: Option<bool>,
    /// Of this server: how long what is deleted of it can be restored; as the settings of
    /// deletions say if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_seconds: Option<u64>,
}

/// `PUT /stacks/{id}`. The other fields of a stack are accepted as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UpdateStack {
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
}

/// `POST /templates/{id}/render`, of this server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RenderTemplate {
    pub parameters: Value,
    /// The agent whose labels and annotations give what is not in `parameters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// What a template makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RenderedTemplate {
    pub yaml_content: String,
}

/// `POST /stacks/{id}/rollback`, of this server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RollBackStack {
    /// The number of the object whose content is submitted again.
    pub sequence_id: i64,
}
