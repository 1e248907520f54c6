//! Workspaces, their groups and their servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::blocker::Blocker;

/// Servers that are declared and taken down together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub project_id: String,
    /// In the order in which their servers come; what a teardown takes last comes first.
    pub groups: Vec<Group>,
    /// Since when nothing is made or taken down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<String>,
    /// What its loop could not do, and why.
    #[serde(default)]
    pub blockers: Vec<Blocker>,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_id: Option<String>,
}

/// Servers that are alike, or one server on its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    pub name: String,
    /// A server on its own.
    pub single: bool,
    /// `ControlPlane`, `Worker` or `LoadBalancer`.
    pub role: String,
    /// How many servers it is to have.
    pub wanted: u32,
    pub min: u32,
    pub max: u32,
    /// How many servers it has.
    pub servers: u32,
    /// How many of them are Ready and stay.
    pub ready: u32,
    pub hostname_pattern: String,
    pub blueprint: String,
    pub depends_on: Vec<String>,
    pub delete_lock: bool,
    /// The declaration does not have it any more: its servers go.
    pub dropped: bool,
}

/// A machine of a workspace, which is a resource with the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Server {
    pub id: String,
    pub name: String,
    pub workspace: String,
    pub workspace_id: String,
    pub group: String,
    pub role: String,
    /// Of the resource.
    pub phase: String,
}

/// `POST /api/v1/workspaces/{workspace}/teardown`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TeardownWorkspace {
    /// The name of the workspace, typed once more.
    pub confirm: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Answer the order, and take nothing down.
    #[serde(default)]
    pub dry_run: bool,
    /// A plan that it has to be held to; an approved one where approval is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Pass brake and approval, as an admin who says why.
    #[serde(default)]
    pub break_glass: bool,
}

/// The order of a teardown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeardownOrder {
    pub workspace: String,
    /// Each waits until what is before it is proven absent.
    pub stages: Vec<TeardownStage>,
}

/// What goes at the same time; control planes go one at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeardownStage {
    pub groups: Vec<TeardownGroup>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeardownGroup {
    pub group: String,
    pub role: String,
    /// In the order in which they go, the newest first.
    pub servers: Vec<String>,
}

/// What a cancelled teardown leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelledTeardown {
    pub workspace: String,
    /// Servers that are gone for good.
    pub gone: Vec<String>,
    /// Servers whose teardown began, and goes on.
    pub leaving: Vec<String>,
    /// Servers that stay.
    pub staying: Vec<String>,
}

/// Why: of a pause, a cancellation, a replacement, a scale-down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Because {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /api/v1/workspaces/{workspace}/groups/{group}/scale-up` and `…/scale-down`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleGroup {
    /// How many servers more or fewer.
    pub by: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScaledGroup {
    pub group: String,
    /// How many servers it is to have now.
    pub wanted: u32,
    /// The servers whose teardown began.
    #[serde(default)]
    pub leaving: Vec<String>,
}

/// `POST /api/v1/workspaces/{workspace}/servers/{server}/mark`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkServer {
    /// Whether it goes first if only a number is given.
    pub marked: bool,
}

/// `POST /api/v1/workspaces/{workspace}/servers/{server}/replace`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceServer {
    /// Make the new machine first. A control plane is never replaced otherwise.
    #[serde(default)]
    pub surge: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The spec of a document of kind `Workspace`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSpec {
    /// At most 100 together with the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupSpec>,
    /// Servers on their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerSpec>,
}

/// Servers that are alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// A DNS label, unique among the groups and servers of the workspace.
    pub name: String,
    /// `ControlPlane`, `Worker` or `LoadBalancer`.
    pub role: String,
    /// How many servers it is to have.
    pub count: u32,
    pub scale: ScalePolicy,
    /// Slug of the blueprint that they are made from.
    pub blueprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub parameters: BTreeMap<String, Value>,
    /// Groups and servers that have to be Ready first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// No server of it is scaled down. Always so for `ControlPlane`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_lock: Option<bool>,
}

/// How far a group may shrink and grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScalePolicy {
    /// It never has fewer Ready servers than this by a scale-down.
    pub min: u32,
    /// It never has more servers than this by a scale-up.
    pub max: u32,
    pub template: HardwareProfile,
}

/// What its servers look like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HardwareProfile {
    /// Their names; `{n}` stands for the number, such as `worker-{n}`.
    pub hostname_pattern: String,
    /// Parameters that say which machine; those of the group count more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub hardware: BTreeMap<String, Value>,
}

/// One server on its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// A DNS label, unique among the groups and servers of the workspace.
    pub name: String,
    /// `ControlPlane`, `Worker` or `LoadBalancer`.
    pub role: String,
    pub blueprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub parameters: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_lock: Option<bool>,
}

/// What an apply would do to the servers of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspacePlan {
    /// The same for as long as the same would happen; an apply that names it does that or nothing.
    pub digest: String,
    pub created: Vec<PlannedGroup>,
    /// Servers that change or go; at most 100 that change are named.
    pub servers: Vec<PlannedServer>,
    /// Servers that change, beside those that are named.
    #[serde(default)]
    pub further: u32,
}

/// Servers that a group would get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedGroup {
    pub group: String,
    pub role: String,
    pub count: u32,
}

/// What would become of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedServer {
    pub server: String,
    pub group: String,
    /// `in_place`, `replace_surge_first`, `replace` or `delete`; `blocked` if something is in the
    /// way of a change.
    pub action: String,
    /// Why it would be refused: each gate, or another reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<PlanObstacle>,
}

/// What is in the way of a planned action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanObstacle {
    /// Stable, snake_case.
    pub code: String,
    pub message: String,
}
