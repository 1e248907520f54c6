//! The rows of tenants.

use slipway_app::access::authorise::Operation::*;
use slipway_core::tenants::profile;
use slipway_wire::deletion::Deletion;
use slipway_wire::rollouts::Rollout;
use slipway_wire::tenants::{
    CreateTenantProfile, MigrateTenants, ProvisionTenant, RepairTenant, RepairTenants,
    RepairedTenants, ResumeTenant, RetriedTenants, RetryTenants, Tenant, TenantDrift, TenantJob,
    TenantProfile, UpdateTenantProfile,
};

use super::{handlers, profiles};
use crate::request::kind;
use crate::routes::{Route, delete, get, patch, post};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/tenant-profiles",           TenantProfileRead,   kind::list::<profile::TenantProfile>,   "List tenant profiles; admins see their settings")
            .page::<TenantProfile>().query(&["show_deleted"]),
        post  ("/tenant-profiles",           TenantProfileCreate, profiles::create,                       "Create a tenant profile").create::<CreateTenantProfile, TenantProfile>(),
        get   ("/tenant-profiles/{profile}", TenantProfileRead,   kind::get::<profile::TenantProfile>,    "Show a tenant profile")
            .one::<TenantProfile>().query(&["show_deleted"]),
        patch ("/tenant-profiles/{profile}", TenantProfileUpdate, profiles::update,                       "Change a tenant profile")
            .body::<UpdateTenantProfile>().one::<TenantProfile>().conditional(),
        delete("/tenant-profiles/{profile}", TenantProfileDelete, kind::delete::<profile::TenantProfile>, "Delete a tenant profile that has no tenants")
            .one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional(),
        post  ("/tenant-profiles/{profile}/migrate", RolloutStart, profiles::migrate,                     "Apply the migrations of a profile to its tenants, in waves and within limits")
            .body::<MigrateTenants>().one::<Rollout>().statuses(&[200, 202]),
        get   ("/projects/{project}/tenants", TenantRead,         handlers::list_in,                      "List the tenants of a project")
            .page::<Tenant>().query(&["profile", "state", "show_deleted"]),
        post  ("/projects/{project}/tenants", TenantProvision,    handlers::provision,                    "Provision a tenant: its job begins at once")
            .create::<ProvisionTenant, Tenant>(),
        get   ("/tenants",                   TenantRead,          handlers::list,                         "List tenants")
            .page::<Tenant>().query(&["project", "profile", "state", "show_deleted"]),
        post  ("/tenants/retry",             TenantRetry,         handlers::retry_many,                   "Retry the failed tenants of a project or of a profile")
            .body::<RetryTenants>().one::<RetriedTenants>(),
        get   ("/tenants/{id}",              TenantRead,          handlers::get,                          "Show a tenant")
            .one::<Tenant>().query(&["show_deleted"]),
        delete("/tenants/{id}",              TenantDelete,        handlers::delete,                       "Decommission a tenant: it is closed, kept for the retention, then destroyed")
            .one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional(),
        post  ("/tenants/{id}/retry",        TenantRetry,         handlers::retry,                        "Retry a tenant whose job failed")
            .one::<Tenant>().statuses(&[202]).conditional(),
        post  ("/tenants/repair",            TenantRepair,        handlers::repair_many,                  "Repair one version in the ledgers of a profile's tenants whose migration failed")
            .body::<RepairTenants>().one::<RepairedTenants>(),
        post  ("/tenants/{id}/repair",       TenantRepair,        handlers::repair,                       "Repair one version in the ledger of a tenant")
            .body::<RepairTenant>().one::<Tenant>().statuses(&[202]).conditional(),
        post  ("/tenants/{id}/resume",       TenantResume,        handlers::resume,                       "Let a tenant go on that waits for a person, for instance after a restored database")
            .body::<ResumeTenant>().one::<Tenant>().statuses(&[202]).conditional(),
        post  ("/tenants/{id}/export",       TenantExport,        handlers::export,                       "Copy the data of a tenant: an archive of pg_dump, or a database file of SQLite")
            .stream("application/octet-stream").conditional(),
        get   ("/tenants/{id}/drift",        TenantRead,          handlers::drift,                        "Compare the target of a tenant with its profile")
            .one::<TenantDrift>().query(&["deep"]),
        get   ("/tenants/{id}/jobs",         TenantRead,          handlers::job_list,                     "List the jobs of a tenant, the oldest first")
            .page::<TenantJob>().query(&["state"]),
        get   ("/tenant-jobs/{job}",         TenantRead,          handlers::job_get,                      "Show a job with its history").one::<TenantJob>(),
    ]
}
