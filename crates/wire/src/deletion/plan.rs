//! Plans of deletions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /api/v1/deletion-plans`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanDeletion {
    /// `project`, `resource`, `cluster`, `blueprint`, `cloud`, `credential` or `label`.
    pub kind: String,
    /// Its name, its id or the beginning of it.
    pub reference: String,
    /// Whether what is in it goes with it.
    #[serde(default)]
    pub cascade: bool,
}

/// `POST /api/v1/deletion-plans/{id}/approve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovePlan {
    pub reason: String,
}

/// What a deletion would take away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeletionPlan {
    pub id: String,
    pub kind: String,
    /// The name of what would be deleted.
    pub target: String,
    pub target_id: String,
    /// The project that the target is or belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    pub cascade: bool,
    pub planned_by: String,
    pub planned_at: String,
    /// It cannot be used any more from then on.
    pub expires_at: String,
    /// The deletion that it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
    /// The second person who approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_until: Option<String>,
    /// The same digest, the same members. Phases do not count.
    pub digest: String,
    /// How many resources would be taken down.
    pub resources: u64,
    /// Everything that would go, in the order in which it goes.
    pub steps: Vec<PlanStage>,
    /// What the composites are composed of, by their name, as their clusters answered, each
    /// with the name that it has in its cloud.
    #[serde(default)]
    pub composed: BTreeMap<String, Vec<String>>,
    /// Why some or all of that is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composed_missing: Option<String>,
    /// What is protected and why, the first twenty, those lifted for now included.
    pub protected: Vec<String>,
    pub protected_count: u64,
    /// Why the deletion would be refused now.
    pub refusals: Vec<PlanRefusal>,
    /// What keeps it from going on once it is accepted: a freeze or observe-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<PlanRefusal>,
    /// The deletion that is under way already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way: Option<String>,
    /// The grace that it has if the request says nothing.
    pub grace_seconds: u64,
    /// After so long it counts as overdue; resources go beside each other.
    pub limit_seconds: u64,
    /// The median of past deletions of resources of the same blueprints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical_seconds: Option<u64>,
    /// How many there were.
    pub typical_of: u64,
}

/// What goes at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanStage {
    /// `drain_nodes`, `delete_composites`, `mark_deleted` or `remove_namespace`.
    pub action: String,
    /// What goes: `node`, `composite`, `namespace`, or a kind of row.
    pub kind: String,
    pub count: u64,
    /// How many of each blueprint, the most first, twenty at most.
    pub blueprints: Vec<PlanGroup>,
    /// The first twenty names.
    pub names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanGroup {
    pub blueprint: String,
    pub count: u64,
}

/// A refusal as the deletion would answer it, or what withholds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanRefusal {
    pub code: String,
    pub message: String,
}
