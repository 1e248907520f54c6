//! Resources, their attempts and their history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::blocker::Blocker;
use crate::catalog::EffectiveLabel;
use crate::nodes::Node;

/// `POST /api/v1/resources`. What is not named takes the installation's
/// default (`default` project, the project's only credential, the newest
/// version of the blueprint).
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclareResource {
    /// The project: its name, its id or the beginning of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The name of the slot, unique in the project among the not deleted.
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub handle: String,
    /// The blueprint: its slug, its id or the beginning of it.
    pub blueprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The credential: its name, its id or the beginning of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it is protected from deletion.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
}

/// One declared resource with its current attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    pub id: String,
    /// The name of its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
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
    /// Since when an update waits to reach the substrate; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_pending_since: Option<String>,
    pub attempt: Attempt,
    /// Another attempt that is there at the same time; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_attempt: Option<SecondAttempt>,
    pub node: Option<Node>,
    pub blockers: Vec<Blocker>,
}

/// An attempt beside the one in use: it is to replace that one, or that one replaced it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecondAttempt {
    pub id: String,
    pub number: i32,
    pub phase: String,
    pub phase_since: String,
    /// It comes in use once it is Ready; if not, it is being taken down.
    pub comes_in_use: bool,
    /// The version of the blueprint that it was made from.
    pub blueprint_version: String,
    pub parameters: BTreeMap<String, Value>,
    pub failure_reason: Option<String>,
    /// The deletion that takes it down.
    pub deletion_id: Option<String>,
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
    /// Since when it has been observed so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_since: Option<String>,
    /// Nobody checks it any more: it may be out of date.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed_stale: bool,
    /// Newest first, at most a hundred.
    #[serde(default)]
    #[schema(required = true)]
    pub attempts: Vec<AttemptSummary>,
    /// Changes of phase of the current attempt, newest first, at most a hundred.
    #[serde(default)]
    #[schema(required = true)]
    pub history: Vec<HistoryEntry>,
    /// Where the whole history is, if there are lines before these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_history: Option<String>,
}

/// One of the attempts to fill a slot; `GET /api/v1/resources/{id}/attempts` has all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptSummary {
    pub id: String,
    pub number: i32,
    pub phase: String,
    pub phase_since: String,
    #[serde(default)]
    #[schema(required = true)]
    pub created_at: String,
    /// Not for one that was made beside another and did not replace it (yet).
    #[serde(default = "yes")]
    #[schema(required = true)]
    pub in_use: bool,
    /// The version of the blueprint that it was made from.
    #[serde(default)]
    #[schema(required = true)]
    pub blueprint_version: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// How it failed, if it did; kept as long as the attempt, whatever followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// When it was proven a second time that nothing is left of it.
    pub absence_proven_at: Option<String>,
    /// When a person gave up proving that; its leak records say what may still exist.
    #[serde(default)]
    pub abandoned_at: Option<String>,
}

const fn yes() -> bool {
    true
}

/// How an attempt failed: the substrate reported a permanent failure, or somebody retried
/// it because its node left or never enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    pub at: String,
    pub reason: String,
    /// What was observed then.
    pub observed: Value,
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
    /// When a person gave up proving that; its leak records say what may still exist.
    #[serde(default)]
    pub abandoned_at: Option<String>,
    pub failure_reason: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

/// One change of phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryEntry {
    pub at: String,
    pub from: Option<String>,
    pub to: String,
    pub why: String,
}

/// `PATCH /api/v1/resources/{id}`. What is not named stays as declared.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateResource {
    /// Another version of the same blueprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// New values; `null` takes a value away, and what is not named stays.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// All labels, in place of those that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// The resource with what an update changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpdatedResource {
    #[serde(flatten)]
    pub resource: Resource,
    /// Nothing was written: the resource is as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The difference field by field; empty if there is none.
    #[serde(default)]
    #[schema(required = true)]
    pub changes: Vec<FieldChange>,
}

/// One field before and after; absent where it has no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Its path, such as `version`, `parameters.<name>` or `labels.<key>`.
    pub field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// `POST /api/v1/resources/{id}/replace`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 500)]
    pub reason: Option<String>,
    /// Another version of the blueprint for the next attempt; the same if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// New values for the next attempt; `null` takes a value away, and what is not named
    /// stays.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// Make the next attempt first; the one in use goes when that is Ready. Its blueprint has
    /// to allow two at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surge: bool,
    /// Take the attempt that was to replace the one in use down, and nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abort: bool,
}

/// `POST /api/v1/resources/{id}/retry`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    /// Another version of the blueprint for the next attempt; the same if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Corrected values for the next attempt; `null` takes a value away, and what is not
    /// named stays.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
}

/// `POST /api/v1/resources/{id}/abandon`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Abandon {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    /// The handle of the resource once more.
    pub confirm: String,
}

/// `POST /api/v1/resources/{id}/orphan`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Orphan {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    /// Only say what would be kept; nothing is recorded.
    #[serde(default)]
    pub dry_run: bool,
}

/// What the node of a resource wrote: whole lines, the newest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Logs {
    pub text: String,
    /// Where what comes later begins.
    pub next_offset: u64,
    /// More was asked for than one answer has.
    pub truncated: bool,
}

/// What is kept outside on purpose, and what holds the teardown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Orphaned {
    pub resource_id: String,
    pub dry_run: bool,
    pub kept: Vec<KeptObject>,
    /// Everything that is still there while the composite is being deleted, as it was
    /// observed: object, owner, who holds it, and the last error of its provider.
    pub holding: Vec<Value>,
}

/// An object in a cloud that stays there on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptObject {
    /// The managed resource that is told to keep it.
    pub object: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_name: Option<String>,
    /// A command that finds it in its cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find: Option<String>,
    /// Open until a person resolves it; a dry run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leak_id: Option<String>,
}
