//! Brings jobs to their end.
//!
//! *Expected flow:* [`Executor::run`] claims a job and follows its edges: run the step of
//! its state, write the edge, go on with the job as the store answered it. An edge is durable
//! before the next step starts.
//!
//! *Guarantees:* two executors never work on one job at a time as long as the lease of the
//! first lasts, and never both write. A run that loses its lease ends its step and writes
//! nothing. What a step recorded before a crash is there for the next call of it. Cleanup is
//! never paused, and runs whatever happened before.
//!
//! *Assumptions:* steps are idempotent, and stop when their future is dropped.
//!
//! *Caveats:* what a step asked another system to do may still happen after its lease. Steps
//! that cannot bear that compare [`StepContext::claim_token`](crate::StepContext::claim_token)
//! there.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use slipway_durable::claim::{Claim, Demand};
use slipway_durable::renewer::LeaseRenewer;
use slipway_durable::{Lease, Moment};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cancel::Cancel;
use crate::drive::{Drive, Renew};
use crate::job::Job;
use crate::options::Options;
use crate::steps::{Callback, Steps};
use crate::store::{ClaimFrom, JobStore};
use crate::writer::Writer;
use crate::{Error, State};

/// Runs the steps of jobs. A clone shares everything.
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn JobStore>,
    pub(crate) steps: [Callback; 5],
    pub(crate) options: Options,
    pub(crate) writer: Arc<Writer>,
}

/// What an [`Executor`] is made of.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    store: Option<Arc<dyn JobStore>>,
    steps: Option<Steps>,
    options: Options,
}

impl Builder {
    #[must_use]
    pub fn store(mut self, store: Arc<dyn JobStore>) -> Self {
        self.store = Some(store);
        self
    }

    #[must_use]
    pub fn steps(mut self, steps: Steps) -> Self {
        self.steps = Some(steps);
        self
    }

    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The executor, or the name of the first thing that is missing.
    pub fn build(self) -> Result<Executor, Error> {
        let store = self.store.ok_or(Error::Missing("store"))?;
        let steps = self.steps.ok_or(Error::Missing("steps"))?.complete()?;
        if self.options.worker.is_empty() {
            return Err(Error::Missing("options.worker"));
        }
        let writer = Arc::new(Writer::new(Arc::clone(&store), self.options.writers));
        Ok(Executor(Arc::new(Inner { store, steps, options: self.options, writer })))
    }
}

/// How a run ended, if the job did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Ready,
    /// A step failed by a transient error; it is tried again after this time.
    Parked {
        after: Duration,
    },
    /// Somebody paused the job or everything, its step holds it for a person to decide, or the
    /// database refused its edge for good. See [`Control::Resume`](crate::Control::Resume).
    Paused {
        reason: String,
    },
    /// The run was cancelled, or took as long as it may. The job is due.
    Interrupted,
    /// Another worker has the job.
    Leased,
}

/// The id of a job, and how its run ended.
pub type Ended = (String, Result<Outcome, Error>);

/// Between two looks at a job that is parked.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Executor {
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Brings a job to its end, from whatever state it is in, and waits while it is parked,
    /// as long as [`Options::total`] allows. A failed job is the error
    /// [`Error::JobFailed`] with its last error.
    pub async fn run(&self, id: &str) -> Result<Outcome, Error> {
        self.run_until(id, &Cancel::new()).await
    }

    /// The same until it is cancelled.
    pub async fn run_until(&self, id: &str, cancel: &Cancel) -> Result<Outcome, Error> {
        let deadline = Instant::now() + self.0.options.total;
        loop {
            if cancel.is_cancelled() {
                return Ok(Outcome::Interrupted);
            }
            let claimed = self.claim(ClaimFrom::Job(id), 1).await?;
            let outcome = match claimed.jobs.first() {
                Some(_) => {
                    let mut ended = self.work_by(claimed, cancel, deadline).await;
                    ended.pop().map_or(Ok(Outcome::Interrupted), |(_, outcome)| outcome)?
                }
                None => self.unclaimed(&self.0.store.get(id).await?)?,
            };
            let Outcome::Parked { after } = outcome else { return Ok(outcome) };
            if Instant::now() + after >= deadline {
                return Ok(outcome);
            }
            tokio::select! {
                () = tokio::time::sleep(after.clamp(SHORTEST_WAIT, LONGEST_WAIT)) => {}
                () = cancel.cancelled() => {}
            }
        }
    }

    /// Claims due jobs for [`Executor::work`].
    pub async fn claim(&self, from: ClaimFrom<'_>, limit: u32) -> Result<ClaimedJobs, Error> {
        let Options { worker, lease, .. } = &self.0.options;
        // Read before the claim, so that the lease is never overestimated.
        let asked_before = Moment::now();
        let demand = Demand { worker, limit, lease: *lease };
        let jobs = self.0.store.claim(from, demand).await?;
        Ok(ClaimedJobs { jobs, lease: Lease::new(asked_before, *lease) })
    }

    /// Works on claimed jobs, all at the same time, and does not wait for those that are
    /// parked. Their heartbeat is sent until the last one ends.
    pub async fn work(&self, claimed: ClaimedJobs, cancel: &Cancel) -> Vec<Ended> {
        self.work_by(claimed, cancel, Instant::now() + self.0.options.total).await
    }

    async fn work_by(
        &self,
        ClaimedJobs { jobs, lease }: ClaimedJobs,
        cancel: &Cancel,
        deadline: Instant,
    ) -> Vec<Ended> {
        let Options { worker, lease: length, .. } = &self.0.options;
        let renew = Renew { store: Arc::clone(&self.0.store), worker: worker.clone() };
        let claims: Vec<_> = jobs
            .iter()
            .map(|job| Claim { key: job.id.clone(), claim_token: job.claim_token })
            .collect();
        let leases = Arc::new(LeaseRenewer::new(renew, &claims, lease, *length));
        let ids: Vec<_> = jobs.iter().map(|job| job.id.clone()).collect();
        let mut running = JoinSet::new();
        for (n, job) in jobs.into_iter().enumerate() {
            let drive = Drive {
                executor: Arc::clone(&self.0),
                leases: Arc::clone(&leases),
                cancel: cancel.clone(),
                deadline,
            };
            running.spawn(async move { (n, drive.run(job).await) });
        }
        let mut ended = Vec::new();
        leases
            .during(async {
                while let Some(done) = running.join_next().await {
                    match done {
                        Ok((n, outcome)) => ended.push((ids[n].clone(), outcome)),
                        // A panic of ours; its lease runs out, and the job is claimed again.
                        Err(error) => tracing::error!(%error, "the run of a job panicked"),
                    }
                }
            })
            .await;
        ended
    }

    /// What to say of a job that could not be claimed.
    fn unclaimed(&self, job: &Job) -> Result<Outcome, Error> {
        match job.state {
            State::Ready => Ok(Outcome::Ready),
            State::Failed => Err(failed(job)),
            _ if job.is_leased => Ok(Outcome::Leased),
            _ => match (&job.paused, job.not_before) {
                (_, Some(until)) => Ok(Outcome::Parked { after: from_now(until) }),
                // It waits to be resumed.
                (paused, None) => {
                    let reason = paused.as_ref().unwrap_or(&job.last_error).clone();
                    Ok(Outcome::Paused { reason })
                }
            },
        }
    }
}

/// Jobs that this executor claimed.
#[derive(Debug)]
pub struct ClaimedJobs {
    pub jobs: Vec<Job>,
    lease: Lease,
}

impl ClaimedJobs {
    /// Each job by itself, for a caller that waits for none of the others.
    pub fn each(self) -> impl Iterator<Item = Self> {
        let lease = self.lease;
        self.jobs.into_iter().map(move |job| Self { jobs: vec![job], lease })
    }
}

pub(crate) fn failed(job: &Job) -> Error {
    Error::JobFailed { id: job.id.clone(), last_error: job.last_error.clone() }
}

/// How long until this time. It only decides how long a run sleeps before it asks the store
/// again, so the clock of this machine will do.
fn from_now(until: SystemTime) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "nothing depends on it but a sleep")]
    let now = SystemTime::now();
    until.duration_since(now).unwrap_or_default()
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("options", &self.0.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, Step};

    #[test]
    fn the_first_missing_part_is_named() {
        let missing = |builder: Builder| builder.build().err().map(|error| error.to_string());
        let store: Arc<dyn JobStore> = Arc::new(MemoryStore::new());
        let builder = Executor::builder();
        assert_eq!(missing(builder.clone()).as_deref(), Some("store is missing"));
        let builder = builder.store(store);
        assert_eq!(missing(builder.clone()).as_deref(), Some("steps is missing"));
        let mut steps = Steps::new();
        let names = Step::ALL.map(|step| format!("steps.{step} is missing"));
        for (step, name) in Step::ALL.into_iter().zip(names) {
            assert_eq!(missing(builder.clone().steps(steps.clone())), Some(name));
            steps = steps.with(step, |_| async { Ok(()) });
        }
        assert_eq!(missing(builder.clone().steps(steps.clone())), None);
        let nameless = Options { worker: String::new(), ..Options::default() };
        let builder = builder.steps(steps).options(nameless);
        assert_eq!(missing(builder).as_deref(), Some("options.worker is missing"));
    }
}
