//! The loops over tenants. One dispatches jobs: it finds partitions with due jobs, claims them
//! in batches and lets the library's executor bring them to their end. The other carries out
//! the tasks of finished tenants.
//!
//! A partition is a project and a profile. The one with the fewest jobs under way comes first,
//! and no profile takes all slots, so that a slow target delays its own tenants only. A wake
//! of this process is answered at once; what another replica queued is found by polling.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::permits::Permits;
use slipway_app::ports::Stores;
use slipway_app::tenants::jobs::KEEPS;
use slipway_app::tenants::tasks::{LIMIT, Tasks};
use slipway_core::operations::control::Mode;
use slipway_core::tenants::tenant::Tenant;
use slipway_durable::Lease;
use slipway_tenants::{
    Cancel, ClaimFrom, ClaimedJobs, Error, Executor, Job, JobStore, Options, Pause, Permit, Step,
    Steps,
};

use crate::driver::{Failure, Loop, Pacing, failure};

/// Jobs under way at once in this process.
const SLOTS: u32 = 16;
/// Of them, those of one profile.
const OF_PROFILE: u32 = 12;
const POLL: Duration = Duration::from_millis(250);

/// How long a job waits until the mode is asked again.
const PAUSED: Duration = Duration::from_secs(2);

/// See the module.
pub struct JobLoop {
    executor: Executor,
    jobs: Arc<dyn JobStore>,
    cancel: Cancel,
    under_way: Mutex<HashMap<String, u32>>,
}

impl fmt::Debug for JobLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobLoop").field("executor", &self.executor).finish_non_exhaustive()
    }
}

/// A job that was claimed from a partition.
#[derive(Debug)]
pub struct Claimed {
    partition: String,
    job: ClaimedJobs,
}

impl JobLoop {
    pub const NAME: &'static str = "tenant-jobs";
    pub const PACING: Pacing = Pacing { slots: SLOTS, batch: 4, poll: POLL };

    /// `worker` is unique among all processes; `lease` is how long the job of a dead one waits.
    pub fn new(
        jobs: Arc<dyn JobStore>,
        steps: Steps,
        pause: Freeze,
        worker: &str,
        lease: Duration,
    ) -> Result<Self, Error> {
        let options = Options {
            worker: worker.to_owned(),
            lease,
            deadlines: [LIMIT; 5],
            total: LIMIT,
            pause_poll: PAUSED,
            pause: Some(Arc::new(pause)),
            keep: |job| job.metadata.contains_key(KEEPS),
            ..Options::default()
        };
        let builder = Executor::builder().store(Arc::clone(&jobs)).steps(steps).options(options);
        Ok(Self {
            executor: builder.build()?,
            jobs,
            cancel: Cancel::new(),
            under_way: Mutex::default(),
        })
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition to claim from, and how many jobs at most.
    fn choose(&self, due: &[String], limit: u32) -> Option<(String, u32)> {
        let under_way = self.under_way();
        let of_profile = |partition: &str| -> u32 {
            let same = |(other, _): &(&String, &u32)| profile(other) == profile(partition);
            under_way.iter().filter(same).map(|(_, count)| *count).sum()
        };
        let open = due.iter().filter(|partition| of_profile(partition) < OF_PROFILE);
        // The first of equals is due for longest.
        let chosen =
            open.min_by_key(|partition| under_way.get(*partition).copied().unwrap_or(0))?;
        let share = u32::try_from(due.len()).map_or(1, |due| (limit / due).max(1));
        Some((chosen.clone(), share.min(OF_PROFILE - of_profile(chosen))))
    }
}

/// What of a partition names its profile.
fn profile(partition: &str) -> &str {
    partition.rsplit_once('/').map_or(partition, |(_, profile)| profile)
}

#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
fn failed(error: Error) -> Failure {
    Failure { is_logged: error.is_temporary(), message: error.to_string() }
}

#[async_trait]
impl Loop for JobLoop {
    type Item = Claimed;
    const ALONE: bool = true;

    fn wind_down(&self) {
        self.cancel.cancel();
    }

    async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, Failure> {
        let mut due = self.jobs.due_partitions().await.map_err(failed)?;
        while let Some((partition, most)) = self.choose(&due, limit) {
            let claimed = self.executor.claim(ClaimFrom::Partition(&partition), most).await;
            let claimed = claimed.map_err(failed)?;
            let count = claimed.jobs.len();
            if count > 0 {
                *self.under_way().entry(partition.clone()).or_default() +=
                    u32::try_from(count).unwrap_or(u32::MAX);
                let of_partition = |job| Claimed { partition: partition.clone(), job };
                return Ok(claimed.each().map(of_partition).collect());
            }
            // Another replica was faster.
            due.retain(|other| *other != partition);
        }
        Ok(Vec::new())
    }

    async fn work(&self, items: Vec<Claimed>, _lease: Lease) -> Vec<String> {
        let mut errors = Vec::new();
        for item in items {
            let Claimed { partition, job } = item;
            let _under_way = UnderWay { of: self, partition: &partition };
            for (id, ended) in self.executor.work(job, &self.cancel).await {
                match ended {
                    // A job that failed is its own affair: its tenant shows it.
                    Ok(_) | Err(Error::JobFailed { .. }) => {}
                    Err(error) => errors.push(format!("job {id}: {error}")),
                }
            }
        }
        errors
    }
}

/// A job of a partition is under way until this is dropped.
struct UnderWay<'a> {
    of: &'a JobLoop,
    partition: &'a str,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut under_way = self.of.under_way();
        if let Some(count) = under_way.get_mut(self.partition) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                under_way.remove(self.partition);
            }
        }
    }
}

/// A freeze pauses every step but cleanup, and so does observe-only after the database was
/// restored. A mode that cannot be read is a pause too.
#[derive(Debug)]
pub struct Freeze {
    pub permits: Arc<Permits>,
    pub stores: Stores,
}

#[async_trait]
impl Pause for Freeze {
    async fn permit(&self, _: &Job, _: Step) -> Result<Permit, String> {
        match self.permits.enter(&self.stores).await {
            Ok(Ok(permit)) => Ok(Permit::with(permit)),
            Ok(Err(Mode::Frozen(freeze))) => {
                Err(format!("a freeze is in force until {}", freeze.until))
            }
            Ok(Err(_)) => Err("the installation only observes".to_owned()),
            Err(error) => Err(format!("the mode cannot be read: {error}")),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct TaskLoop(Tasks);

impl TaskLoop {
    pub const NAME: &'static str = "tenant-tasks";
    pub const PACING: Pacing = Pacing { slots: 8, batch: 8, poll: POLL };

    pub const fn new(tasks: Tasks) -> Self {
        Self(tasks)
    }
}

#[async_trait]
impl Loop for TaskLoop {
    type Item = Tenant;
    const ALONE: bool = true;

    async fn claim(&self, limit: u32) -> Result<Vec<Tenant>, Failure> {
        self.0.claim(limit).await.map_err(failure)
    }

    async fn work(&self, items: Vec<Tenant>, _lease: Lease) -> Vec<String> {
        self.0.work(&items).await
    }
}

#[cfg(test)]
mod tests {
    use slipway_tenants::MemoryStore;

    use super::*;

    fn job_loop() -> JobLoop {
        let jobs: Arc<dyn JobStore> = Arc::new(MemoryStore::new());
        let steps = Step::ALL
            .into_iter()
            .fold(Steps::new(), |steps, step| steps.with(step, |_| async { Ok(()) }));
        let executor = Executor::builder().store(Arc::clone(&jobs)).steps(steps).build().unwrap();
        JobLoop { executor, jobs, cancel: Cancel::new(), under_way: Mutex::default() }
    }

    #[test]
    fn the_partition_with_the_fewest_jobs_comes_first() {
        let jobs = job_loop();
        let due = ["a/x".to_owned(), "b/x".to_owned(), "c/y".to_owned()];
        assert_eq!(jobs.choose(&due, 4), Some(("a/x".to_owned(), 1)));
        jobs.under_way().insert("a/x".to_owned(), 2);
        assert_eq!(jobs.choose(&due, 4), Some(("b/x".to_owned(), 1)));
        assert_eq!(jobs.choose(&due[..1], 4), Some(("a/x".to_owned(), 4)), "alone it has all");
    }

    #[test]
    fn no_profile_takes_all_slots() {
        let jobs = job_loop();
        let due = ["a/x".to_owned(), "b/x".to_owned(), "c/y".to_owned()];
        jobs.under_way().extend([("a/x".to_owned(), 6), ("b/x".to_owned(), 5)]);
        assert_eq!(jobs.choose(&due[..2], 4), Some(("b/x".to_owned(), 1)), "one is left");
        jobs.under_way().insert("b/x".to_owned(), 6);
        assert_eq!(jobs.choose(&due[..2], 4), None);
        assert_eq!(jobs.choose(&due, 4), Some(("c/y".to_owned(), 1)));
    }
}
