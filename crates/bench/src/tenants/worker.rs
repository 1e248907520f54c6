//! A replica without HTTP, as a process that can be killed: the shipped loops over roll-outs,
//! tenant jobs and tenant tasks, in their shipped pacing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use slipway_app::Context;
use slipway_app::permits::Permits;
use slipway_app::rollouts::run::Runner;
use slipway_app::tenants::targets::{TargetError, TargetErrorClass, TenantExport, TenantTargets};
use slipway_app::tenants::tasks::Tasks;
use slipway_controller::driver::{Dependencies, Loop};
use slipway_controller::relay::Relay;
use slipway_controller::rollouts::{RolloutLoop, RolloutPass};
use slipway_controller::tenants::{Freeze, JobLoop, TaskLoop};
use slipway_controller::{Pacing, Shutdown, Status, drive};
use slipway_core::error::Refusal;
use slipway_core::ids::TenantProfileId;
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::task::Task;
use slipway_core::tenants::tenant::Tenant;
use slipway_tenants::targets::{
    Assignment, Fence, LocalResolver, NoJournal, Settings, Target, TenantNames, Work, open, steps,
};
use slipway_tenants::{FailureClass, JobStore, StepError};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

use crate::plane;

pub(crate) const COMMAND: &str = "tenants-worker";

const LEASE: Duration = Duration::from_secs(30);

/// Runs until it is killed.
pub(crate) async fn run(database: &str) -> anyhow::Result<()> {
    let (context, jobs) = opened(database).await?;
    let mut tasks = start(&context, jobs, "worker")?;
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(())
}

/// A context whose tenants live where their profiles say.
pub(super) async fn opened(url: &str) -> anyhow::Result<(Context, Arc<dyn JobStore>)> {
    let (mut context, jobs) = plane::context_of(url).await?;
    context.tenants = Arc::new(Targets::default());
    Ok((context, jobs))
}

fn start(context: &Context, jobs: Arc<dyn JobStore>, worker: &str) -> anyhow::Result<JoinSet<()>> {
    let permits = Arc::new(Permits::default());
    let wakes = &context.wakes;
    let mut tasks = JoinSet::new();
    let relay = Relay::new(context.stores.clone());
    let once = Pacing { slots: 1, batch: 1, poll: Duration::from_millis(250) };
    spawn(&mut tasks, context, Relay::NAME, relay, once, &wakes.outbox);
    let runner = Runner::new(context.clone(), Arc::clone(&permits));
    let rollouts = RolloutLoop::new(RolloutPass::new(runner), worker.to_owned());
    let pacing = RolloutLoop::PACING;
    spawn(&mut tasks, context, RolloutLoop::NAME, rollouts, pacing, &wakes.rollouts);
    let targets = Targets::default();
    let stores = context.stores.clone();
    let steps = steps(move |job| {
        let (targets, stores) = (targets.clone(), stores.clone());
        async move {
            let gone = || StepError::permanent("the tenant is gone");
            let tenant = stores.kind::<Tenant>().fetch(&job.tenant_id, true).await;
            let tenant = tenant.map_err(StepError::transient)?.ok_or_else(gone)?;
            let id = tenant.profile_id.to_string();
            let profile = stores.kind::<TenantProfile>().fetch(&id, true).await;
            let profile = profile.map_err(StepError::transient)?.ok_or_else(gone)?;
            let (target, settings) = targets.open(&profile).await?;
            let names = TenantNames::of(&settings, &tenant.target_name)?;
            let work = job.metadata.get("work").and_then(|work| work.parse().ok());
            Ok(Assignment { target, settings, names, work: work.ok_or_else(gone)?, lost: None })
        }
    });
    let freeze = Freeze { permits: Arc::clone(&permits), stores: context.stores.clone() };
    let loops = JobLoop::new(jobs, steps, freeze, worker, LEASE)?;
    spawn(&mut tasks, context, JobLoop::NAME, loops, JobLoop::PACING, &wakes.tenant_jobs);
    let loops = TaskLoop::new(Tasks::new(context.clone(), permits));
    spawn(&mut tasks, context, TaskLoop::NAME, loops, TaskLoop::PACING, &wakes.tenant_tasks);
    Ok(tasks)
}

fn spawn<L: Loop>(
    tasks: &mut JoinSet<()>,
    context: &Context,
    name: &'static str,
    work: L,
    pacing: Pacing,
    wake: &Arc<Notify>,
) {
    let dependencies = Dependencies {
        clock: Arc::clone(&context.clock),
        entropy: Arc::clone(&context.entropy),
        wake: Arc::clone(wake),
    };
    let (stop, shutdown) = Shutdown::channel();
    let status = Arc::new(Status::new(name));
    tasks.spawn(async move {
        // A loop stops when this is dropped.
        let _stop = stop;
        drive(Arc::new(work), pacing, dependencies, status, shutdown).await;
    });
}

type Opened = (Arc<dyn Target>, Arc<Settings>);

/// The targets of profiles that do not change, as the binary opens them.
#[derive(Debug, Clone, Default)]
struct Targets(Arc<Mutex<HashMap<TenantProfileId, Opened>>>);

impl Targets {
    async fn open(&self, profile: &TenantProfile) -> Result<Opened, StepError> {
        let mut all = self.0.lock().await;
        if let Some(found) = all.get(&profile.id) {
            return Ok(found.clone());
        }
        let settings: Settings =
            serde_json::from_value(profile.settings.clone()).map_err(StepError::permanent)?;
        let opened = (open(&settings, &LocalResolver).await?, Arc::new(settings));
        all.insert(profile.id, opened.clone());
        Ok(opened)
    }
}

#[async_trait]
impl TenantTargets for Targets {
    fn check(&self, _: &Value) -> Result<(), Refusal> {
        Ok(())
    }

    fn check_name(&self, _: &Value, _: &str) -> Result<(), Refusal> {
        Ok(())
    }

    async fn run(
        &self,
        profile: &TenantProfile,
        tenant: &Tenant,
        task: Task,
    ) -> Result<Option<String>, TargetError> {
        let failed = |error: StepError| TargetError {
            message: error.message.clone(),
            class: match error.class {
                FailureClass::Transient => TargetErrorClass::Transient,
                FailureClass::Permanent => TargetErrorClass::Permanent,
                FailureClass::Waiting => TargetErrorClass::Waiting,
            },
        };
        if task != Task::Migrate {
            return Err(failed(StepError::permanent("the bench only migrates")));
        }
        let (target, settings) = self.open(profile).await.map_err(failed)?;
        let names = TenantNames::of(&settings, &tenant.target_name);
        let names = names.map_err(|error| failed(error.into()))?;
        let fence = Fence { work: tenant.work, token: 0 };
        let work = Work { names: &names, fence, lost: None, journal: &NoJournal };
        Ok(target.migrate(&work).await.map_err(failed)?.version)
    }

    async fn export(
        &self,
        _: &TenantProfile,
        _: &Tenant,
    ) -> Result<Box<dyn TenantExport>, TargetError> {
        let message = "nobody asks for a copy here".to_owned();
        Err(TargetError { message, class: TargetErrorClass::Permanent })
    }

    async fn drift(&self, _: &TenantProfile, _: &Tenant, _: bool) -> Result<Value, TargetError> {
        Ok(Value::Array(Vec::new()))
    }
}
