//! The installation: its mode, probes, loops, explanations, withheld actions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::blocker::{Blocker, Remedy};
use crate::broker::{Failure, HistoryEntry};
use crate::nodes::Node;

/// `GET /api/v1/explain/{reference}`: why something is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// `resource`, `attempt`, `node`, `deletion`, `project`, `cluster`, `token` or `leak`.
    pub kind: String,
    pub id: String,
    pub name: String,
    /// Its phase, where it has one.
    pub state: String,
    pub since: String,
    /// How it failed, if it is an attempt that did, or a resource whose current one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// That it will be deleted, when, and how to keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// What a person can do about the state itself; blockers have their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
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
    /// Since when it has been observed so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_since: Option<String>,
    /// Nobody checks it any more: it may be out of date.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed_stale: bool,
    pub node: Option<Node>,
    pub blockers: Vec<Blocker>,
    /// What belongs to it and is of interest, with its blockers.
    pub parts: Vec<ExplainedPart>,
    /// The newest hundred changes of phase, oldest first.
    pub history: Vec<HistoryEntry>,
    /// Where the whole history is, if there are lines before these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_history: Option<String>,
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

/// `GET /api/v1/loops`: the status of every loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoopStatus {
    pub name: String,
    pub activations: u64,
    pub last_activation_at: Option<String>,
    /// Of what failed since the last pass that succeeded.
    pub last_error: Option<String>,
    pub claimed: u64,
    pub failed: u64,
}

/// `GET /api/v1/status`: the whole installation at a glance. A key that a map lacks
/// counts zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstallationStatus {
    /// Attempts by phase.
    pub phases: BTreeMap<String, u64>,
    /// By code.
    pub blockers: BTreeMap<String, u64>,
    /// Registered nodes by reachability.
    pub nodes: BTreeMap<String, u64>,
    /// Open leaks by kind.
    pub leaks: BTreeMap<String, u64>,
    /// Keys that the deletion brake stopped.
    #[serde(default)]
    pub brakes: Vec<String>,
    /// How many files or documents the last apply of a source could not apply, by source.
    #[serde(default)]
    pub file_faults: BTreeMap<String, u64>,
    /// Deletions whose grace lasts.
    #[serde(default)]
    pub scheduled_deletions: u64,
    /// The one that begins first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_deletion: Option<NextDeletion>,
    pub clusters: Vec<ClusterStatus>,
    /// The loops of the replica that answers.
    pub loops: Vec<LoopStatus>,
}

/// A deletion that will begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextDeletion {
    pub id: String,
    pub kind: String,
    /// The name of what is deleted.
    pub name: String,
    pub scheduled_for: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterStatus {
    pub name: String,
    pub engine: String,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
    /// How long the longest due row has waited for a control plane; null if none waits.
    pub lag_seconds: Option<u64>,
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
    /// `apply`, `delete`, `drain` or `take_over`; `unknown` if the substrate cannot be read.
    pub action: String,
    pub since: String,
    pub message: String,
}
