//! What decisions write about tenants.

use crate::ids::{ProjectId, Revision, TenantId, TenantJobId, TenantProfileId};
use crate::tenants::job::JobState;
use crate::tenants::profile::TenantProfile;
use crate::tenants::tenant::Tenant;
use crate::tenants::waiting::ResumedJob;

/// Rows of tenants. An update names the revision in the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum TenantsWrite {
    ProfileInsert(TenantProfile),
    ProfileUpdate(TenantProfile),
    TenantInsert(Tenant),
    TenantUpdate(Tenant),
    JobInsert(NewJob),
    JobResume(ResumedJob),
    Advance(Advance),
    Migrating(Migrating),
}

/// A job that the library will claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewJob {
    pub id: TenantJobId,
    pub tenant_id: TenantId,
    pub project_id: ProjectId,
    pub profile_id: TenantProfileId,
    /// The number of this piece of work on the tenant. The target refuses lower ones.
    pub work: i64,
    /// The failed job that it repeats. It takes over what that one left behind.
    pub retry_of: Option<TenantJobId>,
}

/// The tenants that a roll-out of a profile migrates: they are tried again, or no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrating {
    pub profile: TenantProfileId,
    /// Only of this project.
    pub project: Option<ProjectId>,
    pub goes_on: bool,
}

/// A tenant follows the edges of its job, one revision for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    pub id: TenantId,
    /// The revision that was read.
    pub read: Revision,
    pub revision: Revision,
    pub state: JobState,
    pub version: Option<String>,
    pub present: bool,
    pub leaks: i32,
}
