//! The store of tenants. Locks are taken in the order project, profile, tenant.

use std::time::Duration;

use slipway_core::ids::{ProjectId, TenantId, TenantJobId, TenantProfileId};
use slipway_core::tenants::job::{JobState, TenantJob};
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::tenant::Tenant;

use crate::ports::store::{Error, Page};

/// Which tenant a decision is about.
#[derive(Debug, Clone)]
pub enum TenantKey {
    /// A new one: project and profile by reference.
    New {
        project: String,
        profile: String,
        name: String,
    },
    Existing(TenantId),
    /// Also one that is deleted.
    Kept(TenantId),
    /// The same, and why its job is paused.
    Waiting(TenantId),
}

/// Which tenants to list; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantFilter {
    pub project: Option<ProjectId>,
    pub profile: Option<TenantProfileId>,
    pub state: Option<JobState>,
    pub show_deleted: bool,
}

/// Which jobs to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobFilter {
    pub tenant: TenantId,
    pub state: Option<JobState>,
}

port! {
/// Everything about tenants. Jobs are claimed and written by the library, behind its own store.
pub trait TenantStore of (TenantProfile, Tenant), intercepted by TenantIntercept {
    async fn tenant_job_fetch(&self, id: TenantJobId) -> Result<Option<TenantJob>, Error>;

    /// In the order of their ids.
    async fn tenant_job_list(
        &self,
        filter: JobFilter,
        page: Page<TenantJobId>,
    ) -> Result<Vec<TenantJob>, Error>;

    /// Those of these tenants that exist, deleted or not, in any order.
    async fn tenant_load(&self, ids: &[TenantId]) -> Result<Vec<Tenant>, Error>;

    /// Tenants with a due task, the longest due first. Each has a new number of work, and is
    /// due again after `lease`.
    async fn tenant_task_claim(&self, limit: u32, lease: Duration) -> Result<Vec<Tenant>, Error>;

    /// The task with this number of work is due only after `lease` from now, unless it is due
    /// already: then somebody wants it to begin anew.
    async fn tenant_task_renew(&self, id: TenantId, work: i64, lease: Duration) -> Result<bool, Error>;

    /// The task with this number of work is due again after this time. With an error it
    /// counts as failed. Answers whether it is still the last one.
    async fn tenant_task_later(
        &self,
        id: TenantId,
        work: i64,
        after: Option<Duration>,
        error: Option<&str>,
    ) -> Result<bool, Error>;

    /// The task with this number of work waits for a person. Answers whether it is still the
    /// last one.
    async fn tenant_task_wait(
        &self,
        id: TenantId,
        work: i64,
        reason: &str,
    ) -> Result<bool, Error>;
}
}
