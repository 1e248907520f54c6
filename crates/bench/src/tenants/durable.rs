//! The promise behind the figures: each of a job's edges is durable before the job's next step
//! starts. Each step reads its job over a connection beside the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use slipway_tenants::{StepError, Steps};

use super::ours::{Ours, mk_executor, no_op};

/// Jobs that are checked, many at the same time.
const JOBS: u32 = 400;

const STATE: &str = "SELECT state FROM provisioning_jobs WHERE id = $1";
const READY: &str = "SELECT count(*) FROM provisioning_jobs WHERE state = 'ready' AND jsonb_array_length(history) = 5";

pub(super) async fn check(ours: &Ours) -> anyhow::Result<()> {
    let checked = Arc::new(AtomicU32::new(0));
    let steps = slipway_tenants::Step::ALL.into_iter().fold(no_op(), |steps: Steps, step| {
        let (beside, checked) = (ours.beside.clone(), Arc::clone(&checked));
        steps.with(step, move |context| {
            let (beside, checked) = (beside.clone(), Arc::clone(&checked));
            async move {
                let job = context.job();
                let committed: String =
                    sqlx::query_scalar(STATE).bind(&job.id).fetch_one(&beside).await?;
                if committed != job.state.as_str() {
                    return Err(StepError::permanent(format!(
                        "{step} of {} began while {committed} was committed",
                        job.id
                    )));
                }
                checked.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        })
    });
    ours.run(&mk_executor(&ours.store, steps)?, JOBS).await?;
    let steps = checked.load(Ordering::Relaxed);
    anyhow::ensure!(steps == 4 * JOBS, "{steps} steps were checked");
    let ready: i64 = sqlx::query_scalar(READY).fetch_one(&ours.beside).await?;
    anyhow::ensure!(ready == i64::from(JOBS), "{ready} jobs are ready with five edges");
    println!("every edge of {JOBS} jobs was committed before the next step of its job began");
    Ok(())
}
