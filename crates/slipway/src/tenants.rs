//! Where tenants live, over the library: checks profiles and names, finds the target of a job,
//! carries out tasks and compares. A target is opened for each revision of its profile, and anew
//! after a while.

mod kv;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use slipway_app::ports::Stores;
use slipway_app::ports::store::Error as StoreError;
use slipway_app::tenants::targets::{TargetError, TargetErrorClass, TenantExport, TenantTargets};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{Revision, TenantProfileId};
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::task::{Found, Task};
use slipway_core::tenants::tenant::Tenant;
use slipway_core::tenants::waiting;
use slipway_tenants::targets::{
    Assignment, Export, Fence, LostWork, NoJournal, Repair, Settings, Target, TenantNames, Work,
    open, steps,
};
use slipway_tenants::{FailureClass, Job, StepError, Steps, redacted};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a target is used before its reference is read again, so that a text that was
/// replaced is found.
const FRESH: Duration = Duration::from_secs(300);

/// How long a comparison may take.
const DRIFT_LIMIT: Duration = Duration::from_secs(60);

/// Copies that are read at the same time, in this process: each is a program or a second file.
const EXPORTS: usize = 4;

/// See the module. A clone shares the opened targets.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    stores: Stores,
    opened: Arc<Mutex<HashMap<TenantProfileId, Opened>>>,
    exports: Arc<Semaphore>,
}

#[derive(Debug, Clone)]
struct Opened {
    revision: Revision,
    target: Arc<dyn Target>,
    settings: Arc<Settings>,
    since: Instant,
}

impl Targets {
    pub(crate) fn new(stores: Stores) -> Self {
        Self { stores, opened: Arc::default(), exports: Arc::new(Semaphore::new(EXPORTS)) }
    }

    /// The five steps of every job.
    pub(crate) fn steps(&self) -> Steps {
        let this = self.clone();
        steps(move |job| {
            let this = this.clone();
            async move { this.of_job(&job).await }
        })
    }

    async fn of_job(&self, job: &Job) -> Result<Assignment, StepError> {
        let tenant = self.stores.kind::<Tenant>().fetch(&job.tenant_id, true).await;
        let tenant = tenant.map_err(|error| unavailable(&error))?;
        let tenant = tenant.ok_or_else(|| {
            StepError::permanent(format!("job `{}` is of no tenant of this installation", job.id))
        })?;
        let work = job.metadata.get("work").and_then(|work| work.parse().ok());
        let work = work.ok_or_else(|| {
            StepError::permanent(format!("job `{}` has no number of its work", job.id))
        })?;
        let id = tenant.profile_id.to_string();
        let profile = self.stores.kind::<TenantProfile>().fetch(&id, true).await;
        let profile = profile.map_err(|error| unavailable(&error))?;
        let profile = profile.ok_or_else(|| {
            StepError::permanent(format!("the profile of tenant `{}` is gone", tenant.name))
        })?;
        let Opened { target, settings, .. } = self.open(&profile).await?;
        let names = names(&settings, &tenant)?;
        Ok(Assignment { target, settings, names, work, lost: lost(&tenant) })
    }

    async fn open(&self, profile: &TenantProfile) -> Result<Opened, StepError> {
        let known = |opened: &HashMap<_, Opened>| {
            opened.get(&profile.id).filter(|one| one.revision == profile.revision).cloned()
        };
        let found = known(&self.opened.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(found) = found.clone().filter(|found| found.since.elapsed() < FRESH) {
            return Ok(found);
        }
        let settings =
            parse(&profile.settings).map_err(|refusal| StepError::permanent(refusal.message))?;
        let target = match (open(&settings, &kv::Resolver).await, found) {
            (Ok(target), _) => target,
            // What it was opened with may still do.
            (Err(_), Some(found)) => found.target,
            (Err(error), None) => return Err(error),
        };
        let (revision, settings) = (profile.revision, Arc::new(settings));
        let opened = Opened { revision, target, settings, since: Instant::now() };
        let mut all = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(profile.id, opened.clone());
        Ok(opened)
    }
}

fn unavailable(error: &StoreError) -> StepError {
    StepError::transient(error)
}

fn parse(settings: &Value) -> Result<Settings, Refusal> {
    let settings: Settings = serde_json::from_value(settings.clone()).map_err(|error| {
        let message = format!("the settings cannot be read: {error}; see docs/tenants.md");
        Refusal::new(ErrorKind::TenantProfileInvalid, message).at("settings")
    })?;
    let faults = settings.check().into_iter().map(|fault| {
        let message = format!("`{}` {}: {}", fault.field, fault.problem, fault.remedy);
        let field = format!("settings.{}", fault.field);
        Refusal::new(ErrorKind::TenantProfileInvalid, message).at(field)
    });
    Refusal::all(faults)?;
    Ok(settings)
}

/// The target knows the tenant by its id: other profiles and installations may have its name
/// there, and a later tenant gets it once this one is purged.
fn names(settings: &Settings, tenant: &Tenant) -> Result<TenantNames, StepError> {
    Ok(TenantNames::of(settings, &tenant.target_name)?.owned_by(tenant.id.to_string()))
}

fn lost(tenant: &Tenant) -> Option<LostWork> {
    tenant.lost.map(|waiting::LostWork { after, before }| LostWork { after, before })
}

fn of_step(error: &StepError) -> TargetError {
    let class = match error.class {
        FailureClass::Transient => TargetErrorClass::Transient,
        FailureClass::Permanent => TargetErrorClass::Permanent,
        FailureClass::Waiting => TargetErrorClass::Waiting,
    };
    TargetError { message: redacted(&error.message), class }
}

/// A copy with its place among those that are read at the same time.
#[derive(Debug)]
struct Reading {
    export: Export,
    _slot: OwnedSemaphorePermit,
}

#[async_trait]
impl TenantExport for Reading {
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, TargetError> {
        self.export.piece().await.map_err(|error| of_step(&error))
    }
}

#[async_trait]
impl TenantTargets for Targets {
    fn check(&self, settings: &Value) -> Result<(), Refusal> {
        parse(settings).map(drop)
    }

    fn check_name(&self, settings: &Value, target_name: &str) -> Result<(), Refusal> {
        TenantNames::of(&parse(settings)?, target_name)
            .map(drop)
            .map_err(|error| Refusal::invalid("name", error))
    }

    async fn run(
        &self,
        profile: &TenantProfile,
        tenant: &Tenant,
        task: Task,
    ) -> Result<Option<String>, TargetError> {
        let ran = async {
            let Opened { target, settings, .. } = self.open(profile).await?;
            let names = names(&settings, tenant)?;
            let fence = Fence { work: tenant.work, token: 0 };
            let work = Work { names: &names, fence, lost: lost(tenant), journal: &NoJournal };
            match task {
                Task::Close => target.close(&work).await?,
                Task::Reopen => target.reopen(&work).await?,
                Task::Destroy => target.destroy(&work).await?,
                Task::Migrate => return Ok(target.migrate(&work).await?.version),
                Task::Repair => {
                    if let Some(wanted) = &tenant.repair {
                        let found = match wanted.found {
                            Found::Applied => Repair::Applied,
                            Found::NotApplied => Repair::NotApplied,
                        };
                        target.repair(&work, &wanted.version, found).await?;
                    }
                }
            }
            Ok(None)
        };
        ran.await.map_err(|error: StepError| of_step(&error))
    }

    async fn export(
        &self,
        profile: &TenantProfile,
        tenant: &Tenant,
    ) -> Result<Box<dyn TenantExport>, TargetError> {
        let slot = Arc::clone(&self.exports).try_acquire_owned().map_err(|_| {
            let message =
                format!("{EXPORTS} copies are being read; try again when one is complete");
            TargetError { message, class: TargetErrorClass::Transient }
        })?;
        let begun = async {
            let Opened { target, settings, .. } = self.open(profile).await?;
            let names = names(&settings, tenant)?;
            target.export(&names).await
        };
        let export = begun.await.map_err(|error: StepError| of_step(&error))?;
        Ok(Box::new(Reading { export, _slot: slot }))
    }

    async fn drift(
        &self,
        profile: &TenantProfile,
        tenant: &Tenant,
        deep: bool,
    ) -> Result<Value, TargetError> {
        let compared = async {
            let Opened { target, settings, .. } = self.open(profile).await?;
            let names = names(&settings, tenant)?;
            let drift = target.drift(&names, deep).await?;
            serde_json::to_value(drift.differences).map_err(StepError::permanent)
        };
        match tokio::time::timeout(DRIFT_LIMIT, compared).await {
            Ok(compared) => compared.map_err(|error: StepError| of_step(&error)),
            Err(_) => {
                let message = format!("it took longer than {DRIFT_LIMIT:?}");
                Err(TargetError { message, class: TargetErrorClass::Transient })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use slipway_app::tenants::tasks::LIMIT;

    use super::*;

    /// Whatever a profile may say, the loops wait longer than its statements and programs may take.
    #[test]
    fn the_limits_of_a_profile_hold() {
        const LONGEST: u64 = 86_400;
        let settings = |seconds: u64| {
            serde_json::json!({
                "engine": "sqlite", "target": { "file": "/t" },
                "statement_timeout_seconds": seconds,
                "steps": [{ "name": "x", "after": "seed", "command": ["x"], "deadline_seconds": seconds }],
            })
        };
        parse(&settings(LONGEST)).expect("a day");
        let longer = parse(&settings(LONGEST + 1)).expect_err("more than a day");
        assert!(longer.message.contains("out of range"), "{longer:?}");
        assert!(LIMIT > 2 * Duration::from_secs(LONGEST), "with a command beside a file");
    }
}
