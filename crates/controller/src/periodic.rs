//! Periodic tasks, which several loops have in common: each is a row by name that
//! one replica claims at a time, works on, and releases with the time until the
//! next pass.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::Stores;
use slipway_app::ports::store::Error;
use slipway_core::ids::ClaimToken;
use slipway_durable::renewer::{LeaseRenewer, Renewal};
use slipway_durable::{EarlierClaims, Lease};

use crate::driver::{Failure, Loop, Pacing, failure};

/// The tasks of one loop in this process.
#[derive(Debug)]
pub(crate) struct Tasks {
    stores: Stores,
    worker: String,
    lease: Duration,
    earlier_claims: EarlierClaims,
    /// Tasks that this process has ensured: it never ends a claim on them.
    ensured: Mutex<HashSet<String>>,
}

/// What one replica does at a time, on the database alone and by decisions under lock: two
/// that did it at once would do no harm.
#[async_trait]
pub trait Pass: fmt::Debug + Send + Sync + 'static {
    /// Of the loop, and of its task.
    const NAME: &'static str;
    /// How often other replicas ask whether it is due.
    const POLL: Duration;
    /// The time until the next pass after one that failed.
    const AFTER_FAULT: Duration;

    fn stores(&self) -> &Stores;

    /// Works, and returns the time until the next pass. It ends well before [`PASS_LEASE`].
    async fn pass(&self) -> Result<Duration, Error>;

    /// The process is to stop: a pass under way should end soon.
    fn wind_down(&self) {}
}

/// How long the claim of a pass lasts.
pub(crate) const PASS_LEASE: Duration = Duration::from_secs(30);

/// The loop of a [`Pass`].
#[derive(Debug)]
pub struct PassLoop<P> {
    pass: P,
    tasks: Tasks,
}

impl<P: Pass> PassLoop<P> {
    pub const NAME: &'static str = P::NAME;
    pub const PACING: Pacing = Pacing { slots: 1, batch: 1, poll: P::POLL };

    pub fn new(pass: P, worker: String) -> Self {
        let stores = pass.stores().clone();
        Self { pass, tasks: Tasks::new(stores, worker, PASS_LEASE, EarlierClaims::TakenBack) }
    }
}

#[async_trait]
impl<P: Pass> Loop for PassLoop<P> {
    type Item = ClaimedTask;

    fn lease(&self) -> Duration {
        self.tasks.lease()
    }

    fn wind_down(&self) {
        self.pass.wind_down();
    }

    async fn claim(&self, _limit: u32) -> Result<Vec<ClaimedTask>, Failure> {
        self.tasks.ensure(P::NAME, Duration::ZERO).await?;
        Ok(self.tasks.claim(P::NAME.to_owned()).await?.into_iter().collect())
    }

    async fn work(&self, items: Vec<ClaimedTask>, _lease: Lease) -> Vec<String> {
        let mut errors = Vec::new();
        for task in items {
            let (next, error) = match self.pass.pass().await {
                Ok(next) => (next, None),
                Err(error) => (P::AFTER_FAULT, Some(error.to_string())),
            };
            errors.extend(self.tasks.release(&task, next, error.into_iter().collect()).await);
        }
        errors
    }
}

/// A claimed task.
#[derive(Debug)]
pub struct ClaimedTask {
    name: String,
    claim: ClaimToken,
}

impl Tasks {
    pub(crate) fn new(
        stores: Stores,
        worker: String,
        lease: Duration,
        earlier_claims: EarlierClaims,
    ) -> Self {
        Self { stores, worker, lease, earlier_claims, ensured: Mutex::default() }
    }

    pub(crate) const fn lease(&self) -> Duration {
        self.lease
    }

    /// Before the first claim of a task in this process: creates it, due within
    /// this time, and ends the claim of an earlier process of this worker on it,
    /// unless such claims lapse.
    /// Only the loop of the task calls this, so it ends no claim of this life.
    pub(crate) async fn ensure(&self, name: &str, within: Duration) -> Result<(), Failure> {
        if self.with_ensured(|ensured| ensured.contains(name)) {
            return Ok(());
        }
        let store = &self.stores.operations;
        if self.earlier_claims == EarlierClaims::TakenBack {
            let ended = store.task_reclaim(name, &self.worker).await;
            ended.map_err(failure)?;
        }
        let ensured = store.task_ensure(name, within).await;
        ensured.map_err(failure)?;
        self.with_ensured(|ensured| ensured.insert(name.to_owned()));
        Ok(())
    }

    /// Claims the task if it is due and unclaimed.
    pub(crate) async fn claim(&self, name: String) -> Result<Option<ClaimedTask>, Failure> {
        let claim = self.stores.operations.task_claim(&name, &self.worker, self.lease).await;
        let claim = claim.map_err(failure)?;
        Ok(claim.map(|claim| ClaimedTask { name, claim }))
    }

    /// Renews the claim while the task is worked on.
    pub(crate) fn renewer<'a>(&'a self, task: &'a ClaimedTask, lease: Lease) -> TaskRenewer<'a> {
        let renewal = TaskRenewal { tasks: self, name: &task.name };
        LeaseRenewer::new(renewal, &[task.claim], lease, self.lease)
    }

    /// Releases the task, due again after `next`, and stores the errors of the
    /// pass. Answers them, and the error of the release: the claim then expires
    /// by itself.
    pub(crate) async fn release(
        &self,
        ClaimedTask { name, claim }: &ClaimedTask,
        next: Duration,
        mut errors: Vec<String>,
    ) -> Vec<String> {
        let error = (!errors.is_empty()).then(|| errors.join("; "));
        let released =
            self.stores.operations.task_release(name, *claim, next, error.as_deref()).await;
        errors.extend(released.err().map(|error| error.to_string()));
        errors
    }

    fn with_ensured<T>(&self, change: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        change(&mut self.ensured.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Renews the claim of one task.
pub(crate) type TaskRenewer<'a> = LeaseRenewer<TaskRenewal<'a>>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskRenewal<'a> {
    tasks: &'a Tasks,
    name: &'a str,
}

#[async_trait]
impl Renewal for TaskRenewal<'_> {
    /// There is one.
    type Id = ();
    type Claim = ClaimToken;

    fn id(_: &ClaimToken) {}

    async fn renew(&self, claims: &[ClaimToken], lease: Duration) -> Result<Vec<()>, Failure> {
        let operations = &self.tasks.stores.operations;
        let mut renewed = Vec::new();
        for claim in claims {
            let held = operations.task_renew(self.name, &self.tasks.worker, *claim, lease).await;
            if held.map_err(failure)? {
                renewed.push(());
            }
        }
        Ok(renewed)
    }

    fn count(&self, _: i64) {}
}
