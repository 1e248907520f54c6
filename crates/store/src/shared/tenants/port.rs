//! Implements what the port `TenantStore` has beside the rows of its kinds.

use std::time::Duration;

use slipway_app::ports::store::{Error, Page};
use slipway_app::tenants::port::{JobFilter, TenantStore};
use slipway_core::ids::{TenantId, TenantJobId};
use slipway_core::tenants::job::TenantJob;
use slipway_core::tenants::tenant::Tenant;

use super::{Backend, tasks};

port! {
    TenantStore {
        read tenant_load(ids: &[TenantId]) -> Vec<Tenant> = tasks::load;
        statement tenant_task_renew(id: TenantId, work: i64, lease: Duration) -> bool = tasks::renew;
        statement tenant_task_later(id: TenantId, work: i64, after: Option<Duration>, error: Option<&str>)
            -> bool = tasks::later;
        statement tenant_task_wait(id: TenantId, work: i64, reason: &str) -> bool = tasks::wait_for_person;
    }
    by_hand {
        async fn tenant_task_claim(&self, limit: u32, lease: Duration) -> Result<Vec<Tenant>, Error> {
            match self.read((), tasks::is_due).await? {
                true => self.statement((limit, lease), tasks::claim).await,
                false => Ok(Vec::new()),
            }
        }

        async fn tenant_job_fetch(&self, id: TenantJobId) -> Result<Option<TenantJob>, Error> {
            self.job_fetch(id).await
        }

        async fn tenant_job_list(
            &self,
            filter: JobFilter,
            page: Page<TenantJobId>,
        ) -> Result<Vec<TenantJob>, Error> {
            self.job_list(filter, page).await
        }
    }
}
