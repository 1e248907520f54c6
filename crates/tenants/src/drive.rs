//! One claimed job on its way: step, edge, step, edge, until it ends or is put down.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_durable::claim::Claim;
use slipway_durable::driver::Failure;
use slipway_durable::renewer::{LeaseRenewer, Renewal};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout};
use tracing::Instrument as _;

use crate::cancel::Cancel;
use crate::change::{Change, Due};
use crate::context::StepContext;
use crate::executor::{Inner, Outcome, failed};
use crate::job::{Job, UNRECORDED};
use crate::steps::StepError;
use crate::store::JobStore;
use crate::{Error, State, Step, random};

/// The run of one job.
pub(crate) struct Drive {
    pub(crate) executor: Arc<Inner>,
    pub(crate) leases: Arc<LeaseRenewer<Renew>>,
    pub(crate) cancel: Cancel,
    pub(crate) deadline: Instant,
}

/// How one call of a step ended.
enum Ended {
    Done,
    Failed(StepError),
    /// The process stops. Whatever the step said, it was interrupted.
    Interrupted,
    /// The lease is over: somebody else may have the job.
    LeaseLost,
}

impl Drive {
    pub(crate) async fn run(self, job: Job) -> Result<Outcome, Error> {
        let id = job.id.clone();
        let span = tracing::debug_span!("job", id, tenant = job.tenant_id);
        let outcome = self.follow(job).instrument(span).await;
        self.leases.forget(std::iter::once(id));
        outcome
    }

    async fn follow(&self, mut job: Job) -> Result<Outcome, Error> {
        loop {
            let next = match (job.state, job.state.step()) {
                (State::Ready, _) => return Ok(Outcome::Ready),
                (State::Failed, _) => return Err(failed(&job)),
                (State::Cleanup, _) => self.clean_up(&job).await?,
                (state, _) if job.cancelled.is_some() => {
                    let reason = job.cancelled.as_deref().unwrap_or_default();
                    let error = format!("cancelled: {reason}");
                    tracing::info!(%state, reason, "the job is cancelled");
                    self.give_up(&job, Change::of(&job), error).await?
                }
                // Seeded: the last edge needs no step.
                (_, None) => self.advance(&job, Change::of(&job)).await?,
                (_, Some(step)) => self.step(&job, step).await?,
            };
            match next {
                Next::Job(next) => job = *next,
                Next::End(outcome) => return Ok(outcome),
            }
        }
    }

    async fn step(&self, job: &Job, step: Step) -> Result<Next, Error> {
        if self.cancel.is_cancelled() || Instant::now() >= self.deadline {
            return self.put_down(job, Due::In(Duration::ZERO), Outcome::Interrupted).await;
        }
        if let Some(reason) = &job.paused {
            let outcome = Outcome::Paused { reason: reason.clone() };
            return self.put_down(job, Due::WhenWoken, outcome).await;
        }
        let permit_limit = self.executor.options.permit_limit;
        let _permit = match &self.executor.options.pause {
            None => None,
            Some(pause) => match timeout(permit_limit, pause.permit(job, step)).await {
                Ok(Ok(permit)) => Some(permit),
                no_permit => {
                    // It fails closed: no answer is no permit.
                    let reason = no_permit.map_or_else(
                        |_| format!("no permit within {permit_limit:?}"),
                        |refused| refused.err().unwrap_or_default(),
                    );
                    let after = self.executor.options.pause_poll;
                    return self.put_down(job, Due::In(after), Outcome::Paused { reason }).await;
                }
            },
        };
        if let Some(error) = self.lost_too_often(job, step) {
            tracing::warn!(%step, error, "the step is not started again");
            return self.give_up(job, Change::of(job), error).await;
        }
        let context = self.context(job, step);
        let ended = self.call(&context, self.deadline).await;
        let recorded = context.recorded();
        let error = match ended {
            Ended::LeaseLost => return Err(Error::ClaimLost { id: job.id.clone() }),
            Ended::Done => return self.advance(job, recorded).await,
            Ended::Interrupted => {
                let due = Some(Due::In(Duration::ZERO));
                self.write(Change { release: due, ..recorded }).await?;
                return Ok(Next::End(Outcome::Interrupted));
            }
            Ended::Failed(error) => error,
        };
        if error.is_waiting() {
            return self.wait_for_person(recorded, step, error.message).await;
        }
        let failures = job.step_attempts.saturating_add(1);
        if error.is_transient() && failures < self.executor.options.step_attempts {
            let shown = crate::redacted(&error.message);
            tracing::info!(%step, failures, error = shown, "the step failed; the job is parked");
            return self.park(recorded, failures, Some(error.message)).await;
        }
        tracing::warn!(%step, failures, error = crate::redacted(&error.message), "the step failed");
        self.give_up(job, recorded, error.message).await
    }

    /// Three tries, and neither a pause nor the end of the process stands in their way. What
    /// is left after them is a leak, and the job fails all the same.
    async fn clean_up(&self, job: &Job) -> Result<Next, Error> {
        let context = self.context(job, Step::Cleanup);
        let lost = self.lost_too_often(job, Step::Cleanup);
        let ended = match &lost {
            Some(error) => Ended::Failed(StepError::permanent(error)),
            None => {
                let limit = self.executor.options.deadlines[Step::Cleanup.index()];
                self.call(&context, Instant::now() + limit).await
            }
        };
        let recorded = context.recorded();
        let failed = Change {
            edges: vec![State::Failed],
            step_attempts: Some(0),
            worker: Some(self.executor.options.worker.clone()),
            release: Some(Due::WhenWoken),
            ..recorded.clone()
        };
        let error = match ended {
            Ended::LeaseLost => return Err(Error::ClaimLost { id: job.id.clone() }),
            Ended::Done => {
                let made = Some(Vec::new());
                return self.follow_edge(job, Change { made, ..failed }).await;
            }
            Ended::Interrupted => {
                let due = Some(Due::In(Duration::ZERO));
                self.write(Change { release: due, ..recorded }).await?;
                return Ok(Next::End(Outcome::Interrupted));
            }
            Ended::Failed(error) => error,
        };
        if error.is_waiting() {
            return self.wait_for_person(recorded, Step::Cleanup, error.message).await;
        }
        let failures = job.step_attempts.saturating_add(1);
        if lost.is_none() && failures < self.executor.options.cleanup_attempts {
            tracing::warn!(
                failures,
                error = crate::redacted(&error.message),
                "cleanup failed; it is tried again"
            );
            return self.park(recorded, failures, None).await;
        }
        tracing::error!(
            failures,
            error = crate::redacted(&error.message),
            "cleanup failed; what is left is a leak"
        );
        let left = failed.made.clone().filter(|made| !made.is_empty());
        let leaked = left.unwrap_or_else(|| vec![UNRECORDED.to_owned()]);
        let reason = Some(format!("cleanup failed: {}", error.message));
        let failed = Change { leaked: Some(leaked), reason, ..failed };
        self.follow_edge(job, failed).await
    }

    fn context(&self, job: &Job, step: Step) -> StepContext {
        let writer = Arc::clone(&self.executor.writer);
        StepContext::new(job.clone(), step, writer, self.cancel.clone())
    }

    /// Runs the callback in a task of its own, which ends with its deadline, with the lease
    /// or with this run, and whose panic is an error.
    async fn call(&self, context: &StepContext, deadline: Instant) -> Ended {
        let (step, id) = (context.step(), &context.job().id);
        let limit = self.executor.options.deadlines[step.index()];
        let mut task = JoinSet::new();
        let callback = Arc::clone(&self.executor.steps[step.index()]);
        let given = context.clone();
        // The callback itself may panic before it answers a future.
        let future = async move { callback(given).await };
        task.spawn(future.instrument(tracing::Span::current()));
        let ended = tokio::select! {
            biased;
            ended = task.join_next() => of_task(ended),
            () = self.lease_lost(id) => Ended::LeaseLost,
            () = tokio::time::sleep_until(deadline.min(Instant::now() + limit)) => {
                Ended::Failed(StepError::transient(format!("{step} took longer than {limit:?}")))
            }
        };
        // A step that goes on after its end would meet the next call of itself. One that
        // blocks its thread cannot be ended. Its claim is then neither released nor renewed:
        // nobody has the job before the lease is over, and the token fences the step off.
        task.abort_all();
        let stopped = async { while task.join_next().await.is_some() {} };
        if timeout(self.executor.options.lease, stopped).await.is_err() {
            tracing::error!(%step, "the step does not stop; its claim is left to run out");
            self.leases.forget(std::iter::once(id.clone()));
            return Ended::LeaseLost;
        }
        match ended {
            Ended::Failed(_) if self.cancel.is_cancelled() && step != Step::Cleanup => {
                Ended::Interrupted
            }
            ended => ended,
        }
    }

    /// Returns when the lease is over and was not renewed.
    async fn lease_lost(&self, id: &String) {
        loop {
            let left = self.leases.remaining(id);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// Follows the edge of success. `seeded` is left at once: no step runs there.
    async fn advance(&self, job: &Job, recorded: Change) -> Result<Next, Error> {
        let mut edges: Vec<_> = job.state.next().into_iter().collect();
        if edges == [State::Seeded] {
            edges.push(State::Ready);
        }
        let is_last = edges.last().is_some_and(|to| to.is_terminal());
        let edge = Change {
            edges,
            last_error: Some(String::new()),
            step_attempts: Some(0),
            worker: Some(self.executor.options.worker.clone()),
            release: is_last.then_some(Due::WhenWoken),
            ..recorded
        };
        self.follow_edge(job, edge).await
    }

    async fn give_up(&self, job: &Job, recorded: Change, error: String) -> Result<Next, Error> {
        if let Some(step) = job.state.step()
            && job.cancelled.is_none()
            && (self.executor.options.keep)(job)
        {
            return self.wait_for_person(recorded, step, error).await;
        }
        let reason = format!("at {}: {error}", job.state);
        let edge = Change {
            edges: vec![State::Cleanup],
            reason: Some(reason),
            last_error: Some(error),
            step_attempts: Some(0),
            worker: Some(self.executor.options.worker.clone()),
            ..recorded
        };
        self.follow_edge(job, edge).await
    }

    /// Writes an edge. One that the database refuses for good, such as by its sink, is nobody's
    /// reason to remove a tenant: the job is parked in its state with the refusal, and after as
    /// many tries as a step has it waits until somebody resumes it.
    async fn follow_edge(&self, job: &Job, edge: Change) -> Result<Next, Error> {
        let (to, made, metadata) = (edge.to(), edge.made.clone(), edge.metadata.clone());
        let refusal = match self.write(edge).await {
            Err(Error::Database(refusal)) => refusal,
            written => return written.map(Next::job),
        };
        let error = format!("the edge to {to} was refused: {refusal}");
        tracing::error!(from = %job.state, error, "the job is parked");
        let recorded = Change { made, metadata, ..Change::of(job) };
        let failures = job.step_attempts.saturating_add(1);
        if failures < self.executor.options.step_attempts {
            return self.park(recorded, failures, Some(error)).await;
        }
        let reason = format!("{error}; resume the job when that is repaired");
        let held = Change { last_error: Some(reason.clone()), ..recorded };
        self.pause(held, reason).await
    }

    /// Keeps the job as it is until a person decides: neither the step is tried again nor
    /// anything removed. The error of cleanup is not that of the job.
    async fn wait_for_person(
        &self,
        recorded: Change,
        step: Step,
        error: String,
    ) -> Result<Next, Error> {
        tracing::error!(%step, error = crate::redacted(&error), "the job waits for a person");
        let last_error = (step != Step::Cleanup).then(|| error.clone());
        self.pause(Change { last_error, ..recorded }, format!("{step}: {error}")).await
    }

    /// Ends the claim until somebody resumes the job.
    async fn pause(&self, change: Change, reason: String) -> Result<Next, Error> {
        let paused = Change {
            pause: Some(reason),
            step_attempts: Some(0),
            release: Some(Due::WhenWoken),
            ..change
        };
        let reason = self.write(paused).await?.paused.unwrap_or_default();
        Ok(Next::End(Outcome::Paused { reason }))
    }

    /// Why a step is not started again, if too many workers died in it.
    fn lost_too_often(&self, job: &Job, step: Step) -> Option<String> {
        let lost = job.lost_claims;
        (lost >= self.executor.options.lost_claims).then(|| {
            format!("{lost} workers in a row died in {step} or lost their lease; it is not started again")
        })
    }

    async fn park(
        &self,
        recorded: Change,
        failures: i32,
        last_error: Option<String>,
    ) -> Result<Next, Error> {
        let tries = u32::try_from(failures).unwrap_or(1);
        let after = self.executor.options.backoff.delay(tries, random::jitter());
        self.write(Change {
            last_error,
            step_attempts: Some(failures),
            release: Some(Due::In(after)),
            ..recorded
        })
        .await?;
        Ok(Next::End(Outcome::Parked { after }))
    }

    async fn put_down(&self, job: &Job, due: Due, outcome: Outcome) -> Result<Next, Error> {
        self.write(Change { release: Some(due), ..Change::of(job) }).await?;
        Ok(Next::End(outcome))
    }

    /// Writes under the claim, as long as the lease lasts. Beyond it only the store knows
    /// whether somebody else has the job.
    async fn write(&self, change: Change) -> Result<Job, Error> {
        let id = change.id.clone();
        tokio::select! {
            biased;
            written = self.executor.writer.write(change) => written,
            () = self.lease_lost(&id) => Err(Error::ClaimLost { id }),
        }
    }
}

/// What follows a step.
enum Next {
    Job(Box<Job>),
    End(Outcome),
}

impl Next {
    fn job(job: Job) -> Self {
        Self::Job(Box::new(job))
    }
}

fn of_task(ended: Option<Result<Result<(), StepError>, JoinError>>) -> Ended {
    match ended {
        Some(Ok(Ok(()))) => Ended::Done,
        Some(Ok(Err(error))) => Ended::Failed(error),
        Some(Err(error)) if error.is_panic() => {
            let panic = error.into_panic();
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "no message".to_owned());
            Ended::Failed(StepError::permanent(format!("the step panicked: {text}")))
        }
        // The runtime shuts down.
        Some(Err(_)) | None => Ended::Interrupted,
    }
}

/// How the claims of a batch are renewed.
pub(crate) struct Renew {
    pub(crate) store: Arc<dyn JobStore>,
    pub(crate) worker: String,
}

impl fmt::Debug for Renew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renew").field("worker", &self.worker).finish_non_exhaustive()
    }
}

#[async_trait]
impl Renewal for Renew {
    type Id = String;
    type Claim = Claim<String>;

    fn id(claim: &Claim<String>) -> String {
        claim.key.clone()
    }

    async fn renew(
        &self,
        claims: &[Claim<String>],
        lease: Duration,
    ) -> Result<Vec<String>, Failure> {
        let renewed = self.store.renew(&self.worker, claims, lease).await;
        renewed.map_err(|error| Failure { message: error.to_string(), is_logged: false })
    }

    fn count(&self, _: i64) {}
}
