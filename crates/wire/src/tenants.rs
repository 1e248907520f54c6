//! Tenants, their profiles and their jobs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::rollouts::RolloutStrategy;

/// Where tenants live, and how they are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TenantProfile {
    pub id: String,
    pub name: String,
    pub description: String,
    /// `postgres` or `sqlite`.
    pub engine: String,
    /// Only for admins: they name files and references to secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub settings: Option<Value>,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_id: Option<String>,
}

/// `POST /api/v1/tenant-profiles`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTenantProfile {
    /// A DNS label, unique among profiles.
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// Engine, target, prefix, migrations, seeds, secrets, steps and limits; see the page about
    /// tenants.
    #[schema(value_type = Object)]
    pub settings: Value,
}

/// `PATCH /api/v1/tenant-profiles/{profile}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTenantProfile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Replaces all settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub settings: Option<Value>,
}

/// One database for one customer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tenant {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub project_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    pub profile_id: String,
    /// The state of its last job.
    pub state: String,
    pub job_id: String,
    /// The last migration that is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What its objects on the target are named after.
    pub target_name: String,
    /// Nobody can log in: it is decommissioned.
    pub closed: bool,
    /// How many things its last job could not remove.
    pub leaks: i32,
    /// Why its last task failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Why its task waits for a person, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_reason: Option<String>,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_id: Option<String>,
}

/// `POST /api/v1/projects/{project}/tenants`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProvisionTenant {
    /// A DNS label, unique in the project.
    pub name: String,
    /// Name or id of a tenant profile.
    pub profile: String,
}

/// One try to make a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantJob {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub tenant_id: String,
    pub state: String,
    /// One more with each edge forward.
    pub attempts: i32,
    /// Why its last step failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The failed job that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// How often the current step failed in a row.
    pub step_attempts: i32,
    /// When it may be claimed; of a claimed one the end of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// The worker that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// What its steps made and did not remove.
    pub made: Vec<String>,
    /// What cleanup could not remove.
    pub leaked: Vec<String>,
    pub history: Vec<TenantJobLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

/// An edge that a job followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantJobLine {
    pub from: String,
    pub to: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Why, for the edges to `cleanup` and `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `POST /api/v1/tenants/retry`: the failed tenants of a project, of a profile, or of both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryTenants {
    /// Name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What a retry of many did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetriedTenants {
    /// The names of those that are tried again.
    pub retried: Vec<String>,
    pub refused: Vec<RefusedTenant>,
    /// There are more; ask again.
    pub has_more: bool,
}

/// A tenant that was passed over, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedTenant {
    pub name: String,
    pub id: String,
    pub code: String,
    pub message: String,
}

/// `POST /api/v1/tenants/{id}/repair`: what somebody found out about one migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairTenant {
    /// The version of the migration, such as `7`.
    pub version: String,
    /// `applied` if all of the file as it is now was applied, `not_applied` if nothing was.
    pub found: String,
}

/// `POST /api/v1/tenants/{id}/resume`: somebody has looked at a tenant that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeTenant {
    /// Why; kept in the audit.
    pub reason: String,
    /// Remove what its unfinished job made, instead of going on with it.
    #[serde(default)]
    pub clean_up: bool,
}

/// `POST /api/v1/tenants/repair`: the same for every tenant of a profile whose migration failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairTenants {
    /// Name or id.
    pub profile: String,
    /// Only tenants of this project: name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The version of the migration, such as `7`.
    pub version: String,
    /// `applied` if all of the file as it is now was applied, `not_applied` if nothing was.
    pub found: String,
}

/// What a repair of many did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RepairedTenants {
    /// The names of those whose ledger is repaired.
    pub repaired: Vec<String>,
    pub refused: Vec<RefusedTenant>,
    /// There are more; ask again.
    pub has_more: bool,
}

/// `POST /api/v1/tenant-profiles/{profile}/migrate`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrateTenants {
    /// Only tenants of this project: name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default)]
    pub strategy: RolloutStrategy,
    /// After the canaries, how many tenants come to their end before the next ones begin; all of
    /// them are one chunk if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Answers which tenants it would migrate, in order, and starts nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// How a tenant differs from what its profile says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantDrift {
    pub differences: Vec<TenantDifference>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantDifference {
    /// `ledger`, `object`, `owner`, `grant` or `structure`.
    pub kind: String,
    /// What it is about: a file, a role, a table, an index.
    pub object: String,
    pub expected: String,
    pub found: String,
}

/// Where tenants live and how they are made. Only admins of the installation declare profiles.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TenantProfileSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// As `slipway tenant-profile create --settings` takes them. They refer to secrets and have
    /// none.
    #[schema(value_type = Object)]
    pub settings: Map<String, Value>,
}

/// A database for one customer. A new one is provisioned; one that is pruned is decommissioned.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TenantSpec {
    /// The name of a tenant profile. It cannot change.
    pub profile: String,
}
