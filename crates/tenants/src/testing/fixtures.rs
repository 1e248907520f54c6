//! Jobs, claims and executors for the suite.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{
    Backoff, Claim, ClaimFrom, Demand, Error, Executor, Job, JobStore, NewJob, Options, Steps,
};

/// A store of any kind.
pub type AnyStore = Arc<dyn JobStore>;

/// A lease that does not end within a test.
pub(super) const LEASE: Duration = Duration::from_secs(600);

/// A number that no other call gave.
fn unique() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// A new job of a new tenant, both with names that nobody else uses.
#[must_use]
pub fn mk_new(what: &str) -> NewJob {
    let n = unique();
    let name = format!("{what}-{}-{n}", std::process::id());
    NewJob::new(format!("job-{name}"), format!("tenant-{name}")).in_partition(format!("p-{name}"))
}

pub(super) async fn mk_job(store: &AnyStore, what: &str) -> Job {
    store.upsert(&mk_new(what)).await.expect("a new job")
}

/// Claims this job if it can be claimed.
pub(super) async fn claim(
    store: &AnyStore,
    id: &str,
    worker: &str,
    lease: Duration,
) -> Option<Job> {
    let demand = Demand { worker, limit: 1, lease };
    store.claim(ClaimFrom::Job(id), demand).await.expect("a claim").pop()
}

pub(super) fn claim_of(job: &Job) -> Claim<String> {
    Claim { key: job.id.clone(), claim_token: job.claim_token }
}

#[track_caller]
pub(super) fn code<T: std::fmt::Debug>(answer: &Result<T, Error>) -> &'static str {
    answer.as_ref().expect_err("an error").code()
}

/// Settings with waits of milliseconds.
#[must_use]
pub fn quick() -> Options {
    let backoff = Backoff { base: Duration::from_millis(1), max: Duration::from_millis(4) };
    Options {
        backoff,
        pause_poll: Duration::from_millis(5),
        step_attempts: 3,
        ..Options::default()
    }
}

pub(super) fn executor(store: &AnyStore, steps: Steps, options: Options) -> Executor {
    let builder = Executor::builder().store(Arc::clone(store)).steps(steps).options(options);
    builder.build().expect("a complete executor")
}
