//! Whole tenants by the built-in steps: schema, roles, ten migrations, seeds, with passwords in a
//! folder. The jobs are in a database of their own on the same server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use slipway_tenants::targets::{self, Assignment, LocalResolver, TenantNames};
use slipway_tenants::{
    Executor, JobStore, NewJob, Outcome, PostgresStore, StateStore as _, Step, StepError, Steps,
};
use slipway_testkit::postgres::Postgres;
use tokio::sync::Semaphore;

use super::CONNECTIONS;
use super::profile::Folders;
use crate::report::Report;

const MIGRATIONS: usize = 10;
const SEEDS: usize = 2;
const WORKERS: [u32; 3] = [1, 8, 32];

/// The time in each step, summed over the jobs.
type Spent = Arc<Mutex<[Duration; 5]>>;

pub(super) async fn measure(
    server: &Postgres,
    tenants: [usize; 3],
    report: &mut Report,
) -> anyhow::Result<()> {
    let (jobs, target) = (server.database("jobs").await, server.database("real").await);
    let folders = Folders::new(target.url())?;
    for version in 1..=MIGRATIONS {
        folders.add_migration(version)?;
    }
    for version in 1..=SEEDS {
        folders.add_seed(version)?;
    }
    let store = PostgresStore::connect(jobs.url(), CONNECTIONS, "")?;
    store.create_table().await?;
    let store: Arc<dyn JobStore> = Arc::new(store);
    for (workers, tenants) in WORKERS.into_iter().zip(tenants) {
        let settings = Arc::new(folders.parsed(&format!("w{workers}_"), workers)?);
        let target = targets::open(&settings, &LocalResolver).await;
        let target = target.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let spent = Spent::default();
        let steps = timed(
            &targets::steps(move |job| {
                let (target, settings) = (Arc::clone(&target), Arc::clone(&settings));
                async move {
                    let names = TenantNames::of(&settings, &job.tenant_id)?;
                    Ok::<_, StepError>(Assignment { target, settings, names, work: 1, lost: None })
                }
            }),
            &spent,
        )?;
        let executor = Executor::builder().store(Arc::clone(&store)).steps(steps).build()?;
        let slots = Semaphore::new(workers as usize);
        let started = Instant::now();
        let ran = (0..tenants).map(async |n| {
            let _slot = slots.acquire().await?;
            let (began, id) = (Instant::now(), format!("w{workers}-{n}"));
            store.upsert(&NewJob::new(&id, &id)).await?;
            anyhow::ensure!(executor.run(&id).await? == Outcome::Ready, "{id} is not ready");
            anyhow::Ok(began.elapsed())
        });
        let whole: Duration = futures::future::try_join_all(ran).await?.into_iter().sum();
        let rate = 60.0 * count(tenants) / started.elapsed().as_secs_f64();
        note(workers, tenants, rate, whole, &spent, report);
    }
    Ok(())
}

/// The steps with a clock around each.
fn timed(steps: &Steps, spent: &Spent) -> anyhow::Result<Steps> {
    let mut timed = Steps::new();
    for (n, step) in Step::ALL.into_iter().enumerate() {
        let callback = steps.get(step).ok_or_else(|| anyhow::anyhow!("{step} is missing"))?;
        let spent = Arc::clone(spent);
        timed = timed.with(step, move |context| {
            let (ran, spent) = (callback(context), Arc::clone(&spent));
            async move {
                let began = Instant::now();
                let ended = ran.await;
                spent.lock().unwrap_or_else(PoisonError::into_inner)[n] += began.elapsed();
                ended
            }
        });
    }
    Ok(timed)
}

fn note(
    workers: u32,
    tenants: usize,
    rate: f64,
    whole: Duration,
    spent: &Spent,
    report: &mut Report,
) {
    let spent = *spent.lock().unwrap_or_else(PoisonError::into_inner);
    let each = |time: Duration| time.as_secs_f64() * 1e3 / count(tenants);
    report.note(
        &format!("real_tenants_per_minute_{workers}"),
        rate,
        &format!("{tenants} tenants, {:.1} ms each", each(whole)),
    );
    let steps: Duration = spent.iter().sum();
    // The steps of a job are a part of its run, so nothing is negative.
    let rest = ("jobs", whole.saturating_sub(steps));
    let names = ["schema", "role", "migrate", "seed"];
    for (name, time) in names.into_iter().zip(spent).chain([rest]) {
        let share =
            format!("{:.0} % of a tenant", 100.0 * time.as_secs_f64() / whole.as_secs_f64());
        report.note(&format!("real_ms_{name}_{workers}"), each(time), &share);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred")]
fn count(tenants: usize) -> f64 {
    tenants as f64
}
