//! Deletions; leaks: objects that no row claims, and rows without their object.

pub mod plan;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deletion {
    pub id: String,
    pub kind: String,
    /// The name of what is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub target_id: String,
    /// `scheduled`, `running`, `done`, `purging`, `purged`, `cancelled`, `restored`.
    pub state: String,
    pub requested_by: String,
    pub reason: String,
    /// The project that the target is or belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The deletion that took this one over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Whether what is in the target goes with it.
    #[serde(default)]
    pub cascade: bool,
    /// How many resources it takes down.
    #[serde(default)]
    pub resources: i64,
    /// The first of them; a list of deletions has none.
    #[serde(default)]
    pub members: Vec<DeletionMember>,
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_count: Option<u64>,
    /// Of stacks: the agents that hold or held them, and which of them removed them; the
    /// first of them, and none in a list of deletions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<AgentRemoval>,
    pub requested_at: String,
    /// When its grace ends. Nothing is touched before, and it can be cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<String>,
    pub done_at: Option<String>,
    pub restorable_until: Option<String>,
    /// Whether nobody may purge it before `restorable_until`.
    #[serde(default)]
    pub purge_protected: bool,
    /// When it was purged, cancelled or restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

/// A line of the report of a deletion: first the deletion, then one for each thing that was
/// made, then the end with a digest of all lines before it. Without the end it is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum ReportLine {
    Deletion {
        id: String,
        kind: String,
        target: String,
        target_id: String,
        state: String,
        requested_by: String,
        requested_at: String,
        reason: String,
        done_at: Option<String>,
    },
    Made {
        kind: String,
        id: String,
        name: String,
        made_at: String,
        /// `gone`, `not_yet`, `abandoned`, `leak_open`, `kept_on_purpose`.
        proof: String,
        how: String,
        at: Option<String>,
        by: Option<String>,
        leaks: Vec<String>,
    },
    End {
        lines: u64,
        gone: u64,
        not_yet: u64,
        abandoned: u64,
        leak_open: u64,
        kept_on_purpose: u64,
        /// `sha256:` and the hash over the bytes of all lines before this one.
        digest: String,
    },
}

/// Why a deletion is cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelDeletion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The deletion brake of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Brake {
    /// Its name.
    pub key: String,
    pub key_id: String,
    /// Since when it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What the key asked for then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Until when the key deletes uncounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_until: Option<String>,
}

/// Why a key may delete again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBrake {
    pub reason: String,
    /// How long it deletes uncounted; 10 minutes if not given, 1 hour at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// Brings back what a deletion took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreDeletion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name that what was deleted comes back with; its old one if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename: Option<String>,
    /// New names of resources that were deleted with their project, by their old ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename_members: BTreeMap<String, String>,
    /// Make resources anew, with their old parameters: what they were is gone.
    #[serde(default)]
    pub redeclare: bool,
    /// Change nothing; answer what would come back and what is in its way.
    #[serde(default)]
    pub dry_run: bool,
}

/// What came back, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Restore {
    pub deletion: Deletion,
    pub dry_run: bool,
    /// The first of them.
    pub restored: Vec<RestoredMember>,
    pub restored_count: u64,
    /// What is in the way of it; only of a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<RestoreConflict>,
    #[serde(default)]
    pub conflict_count: u64,
}

/// One thing that comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestoredMember {
    pub kind: String,
    /// The name it comes back with.
    pub name: String,
    pub id: String,
    /// The number of the attempt that follows, if it is a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,
}

/// One thing that is in the way of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestoreConflict {
    /// `name_taken`, `needed_deleted`, `leaving`, `substrate_gone`, `cluster_in_use`, or why
    /// a declaration would be refused.
    pub code: String,
    pub kind: String,
    pub id: String,
    pub name: String,
    /// What it is, and what to do about it.
    pub message: String,
}

/// A purge of a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PurgeDeletion {
    /// Without it nothing is removed, and the answer says what would be.
    #[serde(default)]
    pub force: bool,
    /// Why; required with `force`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Purges although purge protection was on when it was deleted.
    #[serde(default)]
    pub despite_protection: bool,
    /// Erases the content of stacks and templates before it answers, also while something
    /// needs the rows; those go when nothing does. Implies `force`.
    #[serde(default)]
    pub now: bool,
}

/// What a purge removes for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Purge {
    pub deletion_id: String,
    pub kind: String,
    /// The name of what was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Of the deletion: `purging` if the purge began.
    pub state: String,
    /// How many rows.
    pub total: u64,
    pub tables: Vec<PurgeRows>,
    /// Some of the members.
    pub sample: Vec<DeletionMember>,
    /// Why it is not purged now; empty if it can be.
    pub withheld: Vec<PurgeReason>,
}

/// A purge of the deletions that fit, such as those of test data: those that are done, of one
/// project or generator, of things with this label or with a name that begins like this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PurgeDeletions {
    /// Name or id; this or `generator_id` is required for a key of all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The generator whose stacks and templates are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_id: Option<String>,
    /// Only of things of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How the names of the things begin; this or `label` is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_prefix: Option<String>,
    /// A label of a stack, a template or an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Without it nothing is removed, and the answer says what would be.
    #[serde(default)]
    pub force: bool,
    /// Why; required with `force`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Purges although purge protection was on when something was deleted.
    #[serde(default)]
    pub despite_protection: bool,
    /// Erases the content of stacks and templates before it answers. Implies `force`.
    #[serde(default)]
    pub now: bool,
}

/// What a purge of many found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgedDeletions {
    /// How many deletions fit.
    pub found: u64,
    /// How many of them are purged now.
    pub begun: u64,
    /// The first hundred.
    pub deletions: Vec<PurgedDeletion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgedDeletion {
    pub deletion_id: String,
    pub kind: String,
    /// The name of what was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Why it is not purged now; empty if it is, or can be.
    pub withheld: Vec<PurgeReason>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgeRows {
    pub table: String,
    pub rows: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgeReason {
    /// Such as `not_proven_gone`, `open_leak`, `owed_delivery`, `in_use`.
    pub code: String,
    pub message: String,
}

/// The settings of deletions of a project and kind. A field that is absent is taken from
/// the next setting: project and kind, project, kind, everything, the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeletionSetting {
    /// Absent means every project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Absent means every kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_seconds: Option<u64>,
    /// Deletions of more resources than this need an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_above: Option<i64>,
    /// Whether nobody may purge before the retention ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge_protected: Option<bool>,
    pub set_by: String,
    pub set_at: String,
    pub reason: String,
}

/// The values of a setting; they replace the earlier ones as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetDeletionSetting {
    /// At most 365 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<u64>,
    /// At most ten years.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_above: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge_protected: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The protection of one thing from deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Protection {
    pub kind: String,
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    pub set_by: String,
    pub set_at: String,
    pub reason: String,
    /// Until when it is lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_until: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_reason: Option<String>,
}

/// Why a thing is protected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Protect {
    pub reason: String,
}

/// Lifts a protection for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LiftProtection {
    pub reason: String,
    /// From 1 second to 1 hour.
    pub seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeletionMember {
    pub kind: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub id: String,
}

/// How far one agent is with the removal of one stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentRemoval {
    pub agent: String,
    pub agent_id: String,
    pub stack: String,
    pub stack_id: String,
    /// When the agent said that it removed the stack; none while that is owed.
    pub removed_at: Option<String>,
    /// The agent is deleted, so nobody waits for it; a leak record says so.
    pub agent_deleted: bool,
}

/// One leak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Leak {
    pub id: String,
    /// `unclaimed_object`, `missing_object`, `duplicate_object`, or what the
    /// resource loop saw of something Deleted, such as `composite`.
    pub kind: String,
    /// `open` or `resolved`.
    pub state: String,
    /// The handle of the resource of that attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The attempt that it is about, if its object names one.
    pub provisioned_resource_id: Option<String>,
    /// The cluster that it was found on. Not known where the resource loop
    /// found it: its resource has it.
    pub cluster: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub uid: Option<String>,
    pub found_at: String,
    pub last_seen_at: Option<String>,
    pub evidence: Value,
    /// What a person does about it.
    pub remedy: String,
    pub removal_requested_at: Option<String>,
    pub removal_requested_by: Option<String>,
    pub removal_reason: Option<String>,
    pub resolved_at: Option<String>,
    pub resolved_by: Option<String>,
    pub resolution: Option<String>,
}

/// `POST /api/v1/leaks/{id}/resolve` and `…/remove`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeakReason {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

/// The answer to `POST /api/v1/leaks/find`: one for each cluster that was
/// scanned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeakScan {
    pub cluster: String,
    /// Why the scan failed.
    pub error: Option<String>,
    /// Objects of this installation.
    pub objects: u64,
    /// Objects of other installations: counted and left alone.
    pub foreign: u64,
    /// What could not be read; while there is any, nothing counts as gone.
    pub unreadable: Vec<String>,
    /// Open leaks that the scan found.
    pub leaks: Vec<Leak>,
    /// Findings that become leaks only if a later scan finds them again.
    pub suspected: Vec<LeakSuspicion>,
    /// Attempts that the scan woke, so that the resource loop checks them.
    pub woken: u64,
    /// Leaks that the scan resolved.
    pub resolved: u64,
}

/// A finding that is too recent to be a leak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeakSuspicion {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub first_seen_at: String,
    /// A scan that finds it again from then on makes it a leak.
    pub counts_from: String,
}
