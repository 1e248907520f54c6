//! Our own API (`/api/v1`). Requests refuse unknown fields; answers may gain
//! fields. Ids are UUIDs in canonical text, times RFC 3339 in UTC.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::catalog::EffectiveLabel;

/// Header of a list: ids of quarantined rows that were left out because they
/// break an invariant, separated by commas.
pub const QUARANTINED_ROWS: &str = "slipway-quarantined-rows";

/// `POST /api/v1/resources`. What is not named takes the installation's
/// default (`default` project, the project's only credential, the newest
/// version of the blueprint).
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclareResource {
    /// Project name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The name of the slot, unique in the project among the not deleted.
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub handle: String,
    /// Blueprint slug.
    pub blueprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Credential name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// One declared resource with its current attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    pub id: String,
    pub project_id: String,
    pub handle: String,
    pub labels: BTreeMap<String, String>,
    /// The project's labels overlaid by its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effective_labels: BTreeMap<String, EffectiveLabel>,
    pub blueprint: String,
    pub blueprint_version: String,
    pub engine: String,
    pub phase: String,
    pub phase_since: String,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
    /// The deletion that takes it down, if one was asked for.
    pub deletion_id: Option<String>,
    pub attempt: Attempt,
    pub node: Option<Node>,
    pub blockers: Vec<Blocker>,
}

/// `GET /api/v1/resources/{id}`: the same, with what was observed, every attempt
/// and the history of the current one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceDetail {
    #[serde(flatten)]
    pub resource: Resource,
    /// What the last recorded observation found; `null` before the first one.
    pub observed: Option<Value>,
    /// Newest first, at most a hundred.
    #[serde(default)]
    pub attempts: Vec<AttemptSummary>,
    /// Changes of phase of the current attempt, newest first, at most a hundred.
    #[serde(default)]
    pub history: Vec<HistoryEntry>,
}

/// One of the attempts to fill a slot, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptSummary {
    pub id: String,
    pub number: i32,
    pub phase: String,
    pub phase_since: String,
    /// When it was proven a second time that nothing is left of it.
    pub absence_proven_at: Option<String>,
}

/// One filling of the slot: the ProvisionedResource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    pub id: String,
    pub number: i32,
    /// Moves with every change of phase; events carry it.
    pub revision: i64,
    pub phase: String,
    pub xr_name: String,
    pub parameters: BTreeMap<String, Value>,
    pub deletion_requested_at: Option<String>,
    /// When it was proven a second time that nothing is left of it.
    pub absence_proven_at: Option<String>,
    pub failure_reason: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

/// An enrolled node agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub id: String,
    pub project_id: String,
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
    pub registered_at: String,
    pub last_heartbeat_at: Option<String>,
    pub drain_requested_at: Option<String>,
    pub deregistered_at: Option<String>,
    /// `acknowledged`, `immediate`, `substrate_absent`, `forced` or `left`.
    pub deregistered_how: Option<String>,
    pub deregistered_by: Option<String>,
    pub deregistered_reason: Option<String>,
}

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

/// `GET /api/v1/explain/{kind}/{id}`: why something is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// `resource`, `node`, `deletion`, `project`, `cluster`, `token` or `leak`.
    pub kind: String,
    pub id: String,
    pub name: String,
    /// Its phase, where it has one.
    pub state: String,
    pub since: String,
    /// One sentence: what has to happen for the state to change.
    pub waiting_for: Option<String>,
    /// When the wait becomes a blocker.
    pub deadline: Option<String>,
    /// The deadline has passed.
    pub overdue: bool,
    /// One sentence: what happens next if nobody does anything.
    pub next: String,
    /// When the loop checks it again at the latest.
    pub next_check_at: Option<String>,
    /// Who works on it just now.
    pub held_by: Option<Holder>,
    /// What else is known, by name.
    pub facts: BTreeMap<String, Value>,
    /// What the last observation of the substrate found.
    pub observed: Value,
    pub node: Option<Node>,
    pub blockers: Vec<Blocker>,
    /// What belongs to it and is of interest, with its blockers.
    pub parts: Vec<ExplainedPart>,
    pub history: Vec<HistoryEntry>,
}

/// A worker with a claim, and when its lease ends unless it is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Holder {
    pub worker: String,
    pub until: String,
}

/// Something that belongs to what is explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedPart {
    pub kind: String,
    pub id: String,
    pub name: String,
    pub state: String,
    pub since: Option<String>,
    /// Its relation to what is explained.
    pub about: Option<String>,
    pub blockers: Vec<Blocker>,
}

/// One change of phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryEntry {
    pub at: String,
    pub from: Option<String>,
    pub to: String,
    pub why: String,
}

/// `POST /api/v1/resources/{id}/force-drain`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForceDrain {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

/// `POST /api/v1/resources/{id}/retry`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

/// One deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deletion {
    pub id: String,
    pub kind: String,
    pub target_id: String,
    /// `scheduled`, `running`, `done`, `purging`, `purged`, `cancelled`, `restored`.
    pub state: String,
    pub requested_by: String,
    pub reason: String,
    pub members: Vec<DeletionMember>,
    pub requested_at: String,
    pub done_at: Option<String>,
    pub restorable_until: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeletionMember {
    pub kind: String,
    pub id: String,
}

/// One lifecycle event, in the order of its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The stable message id.
    pub id: String,
    pub position: i64,
    #[serde(rename = "type")]
    pub event_type: String,
    pub aggregate_id: String,
    pub revision: i64,
    pub occurred_at: String,
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

/// Paging of every list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/v1/loops`: the status of every loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoopStatus {
    pub name: String,
    pub activations: u64,
    pub last_activation_at: Option<String>,
    pub last_error: Option<String>,
    pub claimed: u64,
    pub failed: u64,
}

/// `GET /readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    pub ready: bool,
    pub probes: Vec<Probe>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Probe {
    pub name: String,
    pub ok: bool,
    pub detail: String,
}

/// `GET /api/v1/control`: the mode of the installation and who obeys it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Control {
    pub installation_id: String,
    /// `acting`, `frozen` or `observing`.
    pub mode: String,
    /// Moves with every change of the mode.
    pub revision: i64,
    pub freeze: Option<Freeze>,
    pub observing: Option<Observing>,
    /// No action that began under an earlier mode is under way anywhere.
    pub settled: bool,
    pub replicas: Vec<Replica>,
    /// How nodes reach this installation, if it was ever configured.
    pub public_url: Option<String>,
}

/// Nothing outside is changed until then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Freeze {
    pub since: String,
    pub until: String,
    pub by: String,
    pub reason: String,
}

/// Nothing outside is changed until a person resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Observing {
    pub since: String,
    pub by: String,
    pub reason: String,
}

/// A control plane that shares the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replica {
    pub worker: String,
    pub seen_at: String,
    /// Everything it does obeys the mode in force.
    pub obeys: bool,
    /// No heartbeat for longer than its lease; its actions are over.
    pub lapsed: bool,
}

/// `PUT /api/v1/control/freeze`. An hour if no length is given.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutFreeze {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_seconds: Option<u64>,
}

/// `POST /api/v1/control/resume`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

/// The header with the version of the replica that answered.
pub const VERSION: &str = "slipway-version";

/// Header of the list of withheld actions: how many resources were not checked
/// yet, so that the list may still grow.
pub const WITHHELD_UNCHECKED: &str = "slipway-withheld-unchecked";

/// One line of `GET /api/v1/control/withheld`: what would be done to one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WithheldAction {
    pub resource_id: String,
    pub provisioned_resource_id: String,
    pub project: String,
    pub handle: String,
    pub phase: String,
    /// `apply`, `delete` or `drain`; `unknown` if the substrate cannot be read.
    pub action: String,
    pub since: String,
    pub message: String,
}
