//! How agents, stacks and objects are doing, the audit, and faults.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::entities::AgentEvent;

/// The health of an object on the cluster of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentHealth {
    pub agent_id: String,
    pub checked_at: String,
    pub created_at: String,
    pub deployment_object_id: String,
    pub id: String,
    pub status: String,
    pub summary: Option<String>,
    pub updated_at: String,
}

/// `GET /deployment-objects/{id}/health`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentHealthResponse {
    pub deployment_object_id: String,
    pub health_records: Vec<DeploymentHealth>,
    pub overall_status: String,
}

/// On how many agents an object is how healthy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentObjectHealthSummary {
    pub degraded_agents: i64,
    pub failing_agents: i64,
    pub healthy_agents: i64,
    pub id: String,
    pub status: String,
}

/// `GET /stacks/{id}/health`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StackHealthResponse {
    pub deployment_objects: Vec<DeploymentObjectHealthSummary>,
    pub overall_status: String,
    pub stack_id: String,
}

/// An agent in `GET /fleet`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetAgentRecord {
    pub agent_id: String,
    pub claimed_work_orders: i64,
    pub cluster_name: String,
    pub connected_since: Option<String>,
    pub health_degraded: i64,
    pub health_failing: i64,
    pub heartbeat_age_seconds: Option<i64>,
    pub k8s_api_latency_ms: Option<i64>,
    pub k8s_reachable: Option<bool>,
    pub last_event_at: Option<String>,
    pub last_heartbeat: Option<String>,
    pub name: String,
    pub pending_object_count: i64,
    pub pending_work_orders: i64,
    pub seconds_since_last_event: Option<i64>,
    pub status: String,
    pub ws_connected: bool,
}

/// `GET /agents/{id}/fleet-status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentFleetStatusResponse {
    pub recent_events: Vec<AgentEvent>,
    pub record: FleetAgentRecord,
}

/// An event of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentK8sEvent {
    pub agent_id: String,
    pub created_at: String,
    pub event_type: String,
    pub id: String,
    pub involved_object: Value,
    pub message: String,
    pub observed_at: String,
    pub reason: String,
    pub source: Option<String>,
    pub stack_id: String,
}

/// `GET /stacks/{id}/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct K8sEventHistoryResponse {
    pub events: Vec<AgentK8sEvent>,
    pub retention: RetentionInfo,
}

/// A line that a pod wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentPodLog {
    pub agent_id: String,
    pub container: String,
    pub created_at: String,
    pub id: String,
    pub line: String,
    pub namespace: String,
    pub pod: String,
    pub stack_id: String,
    pub ts: String,
}

/// `GET /stacks/{id}/logs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PodLogHistoryResponse {
    pub lines: Vec<AgentPodLog>,
    pub retention: RetentionInfo,
}

/// How long such lines are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetentionInfo {
    pub effective_retention_seconds: i64,
    pub long_term_sink_hint: String,
    pub oldest_available_ts: Option<String>,
    pub retention_ceiling_seconds: i64,
}

/// A connection of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WsConnectionInfo {
    pub agent_id: String,
    pub connected_since: String,
    pub messages_in: i64,
    pub messages_out: i64,
}

/// `GET /admin/ws/connections`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WsConnectionsResponse {
    pub connected_agents: i64,
    pub connections: Vec<WsConnectionInfo>,
    pub live_subscribers: i64,
}

/// An audit entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditLog {
    pub action: String,
    pub actor_id: Option<String>,
    pub actor_type: String,
    pub created_at: String,
    pub details: Option<Value>,
    pub id: String,
    pub ip_address: Option<String>,
    pub resource_id: Option<String>,
    pub resource_type: String,
    pub timestamp: String,
    pub user_agent: Option<String>,
}

/// `GET /admin/audit-logs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditLogListResponse {
    pub count: i64,
    pub limit: i64,
    pub logs: Vec<AuditLog>,
    pub offset: i64,
    pub total: i64,
}

/// A fault; `code` is stable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorResponse {
    pub code: String,
    pub details: Option<Value>,
    pub message: String,
}
