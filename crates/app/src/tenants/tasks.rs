//! Carries out the tasks of finished tenants: close, reopen, destroy, migrate.
//!
//! *Guarantees:* a task has a new number of work with every try, and the target refuses what
//! comes with a lower one. It begins only with a permit, and its outcome is written only if no
//! other try began meanwhile. Which task it is follows from the row at that moment.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use slipway_core::access::audit::Actor;
use slipway_core::commit::Commit;
use slipway_core::deletion::request::{self, DeletionSnapshot};
use slipway_core::error::ErrorKind;
use slipway_core::tenants::task::{self, Task, needed};
use slipway_core::tenants::tenant::{Tenant, TenantSnapshot};
use tokio::time::timeout;

use super::port::TenantKey;
use super::provision::profile_of;
use super::targets::TargetErrorClass::{Permanent, Transient, Waiting};
use crate::Context;
use crate::deletion::request::wake;
use crate::permits::Permits;
use crate::ports::store::Error;

/// How long a try of a task, or a step of a job, may take. Every statement, program and wait in it
/// has its own limit, from the settings of the profile, and a folder may have many files: this is
/// far above all of them, for what hangs in spite of that. Leases are renewed meanwhile, and a
/// worker that lost its own is refused by the target, so a long try is no risk.
pub const LIMIT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long the task of a dead replica waits. A try renews it three times in it.
const LEASE: Duration = Duration::from_secs(30);
/// Until the mode is asked again.
const WITHHELD: Duration = Duration::from_secs(5);
/// Between two tries that failed, doubled with each up to this.
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// See the module.
#[derive(Debug, Clone)]
pub struct Tasks {
    context: Context,
    permits: Arc<Permits>,
    actor: Actor,
}

impl Tasks {
    pub fn new(context: Context, permits: Arc<Permits>) -> Self {
        Self { context, permits, actor: Actor::new("loop:tenants") }
    }

    /// Claims tenants whose task is due.
    pub async fn claim(&self, limit: u32) -> Result<Vec<Tenant>, Error> {
        self.context.stores.tenants.tenant_task_claim(limit, LEASE).await
    }

    /// Carries out the tasks of claimed tenants. Answers those that could not be recorded.
    pub async fn work(&self, claimed: &[Tenant]) -> Vec<String> {
        let ended = join_all(claimed.iter().map(|tenant| self.one(tenant))).await;
        let failed = claimed.iter().zip(ended).filter_map(|(tenant, ended)| {
            ended.err().map(|error| format!("a task of tenant {}: {error}", tenant.id))
        });
        failed.collect()
    }

    async fn one(&self, tenant: &Tenant) -> Result<(), Error> {
        let Some(task) = needed(tenant) else { return self.later(tenant, None, None).await };
        let Ok(_permit) = self.permits.enter(&self.context.stores).await? else {
            return self.later(tenant, Some(WITHHELD), None).await;
        };
        let ran = match profile_of(&self.context, tenant).await {
            Ok(profile) => {
                let run = self.context.tenants.run(&profile, tenant, task);
                match timeout(LIMIT, self.renewing(tenant, run)).await {
                    Ok(ran) => ran.map_err(|error| (error.to_string(), error.class)),
                    Err(_) => Err((format!("it took longer than {LIMIT:?}"), Transient)),
                }
            }
            Err(error) => Err((error.to_string(), Transient)),
        };
        match ran {
            Ok(version) => self.done(tenant, task, version).await,
            Err((error, Waiting)) => {
                tracing::error!(tenant_id = %tenant.id, %task, error, "a task waits for a person");
                let tenants = &self.context.stores.tenants;
                tenants.tenant_task_wait(tenant.id, tenant.work, &error).await?;
                Ok(())
            }
            Err((error, class)) => {
                tracing::warn!(tenant_id = %tenant.id, %task, error, "a task failed");
                if task == Task::Repair && class == Permanent {
                    return self.withdraw(tenant, &error).await;
                }
                let doubled = 2_u32.saturating_pow(u32::try_from(tenant.failures).unwrap_or(0));
                let after = BACKOFF.saturating_mul(doubled).min(BACKOFF_MAX);
                self.later(tenant, Some(after), Some(&error)).await
            }
        }
    }

    /// Renews the lease until the work ends. A lease that is lost ends nothing: the target
    /// refuses the lower number as soon as another try has begun.
    async fn renewing<T>(&self, tenant: &Tenant, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = timeout(LEASE / 3, &mut work).await {
                return done;
            }
            let store = &self.context.stores.tenants;
            if let Err(error) = store.tenant_task_renew(tenant.id, tenant.work, LEASE).await {
                tracing::warn!(tenant_id = %tenant.id, %error, "a task was not renewed");
            }
        }
    }

    async fn later(
        &self,
        tenant: &Tenant,
        after: Option<Duration>,
        error: Option<&str>,
    ) -> Result<(), Error> {
        self.context.stores.tenants.tenant_task_later(tenant.id, tenant.work, after, error).await?;
        Ok(())
    }

    /// What a person found out does not fit the target: they look again.
    async fn withdraw(&self, tenant: &Tenant, error: &str) -> Result<(), Error> {
        let mut rule = |snapshot: &TenantSnapshot| {
            let current = snapshot.tenant.as_ref().filter(|current| current.work == tenant.work);
            Ok(current.map_or_else(Commit::default, |current| task::withdrawn(current, error)))
        };
        let store = self.context.stores.kind::<Tenant>();
        store.decide(&TenantKey::Kept(tenant.id), &mut rule).await?;
        Ok(())
    }

    async fn done(
        &self,
        tenant: &Tenant,
        task: Task,
        version: Option<String>,
    ) -> Result<(), Error> {
        let mut rule = |snapshot: &TenantSnapshot| {
            let current = snapshot.tenant.as_ref().filter(|current| current.work == tenant.work);
            Ok(current.map_or_else(Commit::default, |current| {
                task::done(current, task, version.clone(), &self.actor, snapshot.now)
            }))
        };
        let store = self.context.stores.kind::<Tenant>();
        store.decide(&TenantKey::Kept(tenant.id), &mut rule).await?;
        if let Some(deletion) = tenant.deletion_id {
            let mut rule =
                |snapshot: &DeletionSnapshot| Ok(request::advance(snapshot, &self.actor));
            match self.context.stores.deletion.deletion_decide(deletion, &mut rule).await {
                // The loop over deletions finds it by itself.
                Err(Error::Refused(refusal)) if refusal.kind == ErrorKind::RevisionStale => {}
                ended => ended?,
            }
            // Also what is being purged goes on now, in whatever replica.
            wake(&self.context).await;
        }
        self.context.wakes.wake();
        self.context.wakes.ticked.notify_one();
        Ok(())
    }
}
