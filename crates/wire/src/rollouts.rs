//! Roll-outs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How members are changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutStrategy {
    /// The first members, which are healthy before any other is changed; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<u32>,
    /// Members in work at the same time; 5 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Failed members that do not pause it; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures_allowed: Option<u32>,
    /// How long a member may take to become healthy; half an hour if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_within_seconds: Option<u64>,
    /// Label selectors: one wave for each, in this order; what none selects comes last.
    #[serde(default)]
    pub waves: Vec<String>,
    /// Whether an agent on which an object is failing counts as not healthy; of stacks only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait_for_health: bool,
}

/// `POST /api/v1/blueprints/{blueprint}/upgrade`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpgradeBlueprint {
    /// The version that its resources get.
    pub to: String,
    /// Only resources of this project: name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Only resources whose labels in effect match all of these.
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default)]
    pub strategy: RolloutStrategy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Answers what it would change, in order, and starts nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// `POST /api/v1/rollouts/{id}/pause`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseRollout {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /api/v1/rollouts/{id}/resume`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeRollout {
    /// Goes on without the members that failed, instead of waiting for them again.
    #[serde(default)]
    pub skip_failed: bool,
}

/// `POST /api/v1/rollouts/{id}/abort`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortRollout {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One change brought to many members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rollout {
    /// `None` in the answer to a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What its members become, such as `blueprint_upgrade`.
    pub purpose: String,
    /// As people call it.
    pub title: String,
    /// What all members belong to.
    pub subject_kind: String,
    pub subject: String,
    pub subject_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// What each member gets.
    pub change: serde_json::Value,
    pub strategy: RolloutStrategy,
    /// `running`, `paused`, `rolling_back`, `done`, `aborted` or `rolled_back`.
    pub state: String,
    /// Why it is paused, or what its end left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many members are in each state.
    pub progress: BTreeMap<String, u64>,
    pub members: u64,
    pub requested_by: String,
    pub reason: String,
    pub requested_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The first members, in order; only in the answer to a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<RolloutMember>,
}

/// A member of a roll-out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RolloutMember {
    pub kind: String,
    pub name: String,
    pub id: String,
    /// 0 for a canary.
    pub wave: i32,
    pub position: i32,
    /// `waiting`, `changing`, `healthy`, `failed`, `skipped`, `gone`, `reverting`, `reverted`
    /// or `revert_failed`.
    pub state: String,
    /// What it had before.
    pub before: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
