//! What a store of jobs does. A store for another database implements both traits and
//! runs the suite in [`testing`](crate::testing).

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use slipway_durable::claim::{Claim, Demand};

use crate::change::Change;
use crate::job::{Job, Metadata, NewJob};
use crate::{Error, State};

/// The document's contract.
#[async_trait]
pub trait StateStore: Debug + Send + Sync {
    /// The job, or [`Error::JobNotFound`].
    async fn get(&self, id: &str) -> Result<Job, Error>;

    /// Inserts a pending job, or answers the one with this id as it is. Refuses an id of
    /// another tenant, and a tenant that has an unfinished job, is ready, or has a leak.
    async fn upsert(&self, job: &NewJob) -> Result<Job, Error>;

    /// Follows one edge if the job is in state `from`. Metadata is replaced as a whole, or
    /// kept if there is none; the error is always replaced. What goes first if several
    /// things are wrong: the edge is illegal, the job does not exist, the state is another
    /// one, a worker has the job.
    async fn transition(
        &self,
        id: &str,
        from: State,
        to: State,
        metadata: Option<&Metadata>,
        last_error: &str,
    ) -> Result<(), Error>;

    /// Makes table and indexes, or adds the columns that a table lacks. May be called any
    /// number of times, also at the same time.
    async fn create_table(&self) -> Result<(), Error>;
}

/// What the executor needs beyond it: sets, claims and the controls of a job.
#[async_trait]
pub trait JobStore: StateStore {
    /// [`StateStore::upsert`] of many, in their order. The answers are in the same order.
    async fn upsert_many(&self, jobs: &[NewJob]) -> Vec<Result<Job, Error>>;

    /// Claims due jobs, the longest due first: unfinished, due, and under no live lease.
    /// A row that cannot be read is left alone for an hour and not answered.
    async fn claim(&self, from: ClaimFrom<'_>, demand: Demand<'_>) -> Result<Vec<Job>, Error>;

    /// Renews those of these claims that the worker still has, and answers their ids.
    async fn renew(
        &self,
        worker: &str,
        claims: &[Claim<String>],
        lease: Duration,
    ) -> Result<Vec<String>, Error>;

    /// Writes many changes of different jobs in one transaction. Each is written or refused
    /// by itself. The answers are in the order of the changes; what is answered as written
    /// is durable.
    async fn write(&self, changes: &[Change]) -> Vec<Result<Job, Error>>;

    async fn control(&self, id: &str, control: &Control) -> Result<Job, Error>;

    /// A page of jobs in the order of their ids.
    async fn find(&self, filter: &Filter) -> Result<Vec<Job>, Error>;

    /// The partitions with a job that could be claimed now, the longest due first.
    async fn due_partitions(&self) -> Result<Vec<String>, Error>;
}

/// Which jobs to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFrom<'a> {
    Partition(&'a str),
    Job(&'a str),
}

/// What a person does to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// No step is started until it is resumed; cleanup goes on.
    Pause {
        reason: String,
    },
    Resume,
    /// Before its next step the job goes to cleanup.
    Cancel {
        reason: String,
    },
    /// The tenant of this ready job exists no more; a new job for it is admitted.
    Decommission,
    /// The decommissioned tenant of this job was restored. Refused with
    /// [`Error::TenantReplaced`] if another job was admitted meanwhile; one that failed and left
    /// nothing behind does not count.
    Recommission,
    /// What this failed job left behind was removed.
    ResolveLeaks,
}

/// Which jobs to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub state: Option<State>,
    pub tenant_id: Option<String>,
    pub partition: Option<String>,
    /// Those with an open leak record.
    pub leaked: bool,
    /// The last id of the page before.
    pub after: Option<String>,
    /// How many at most; 100 if it is 0.
    pub limit: u32,
}

/// The clock for `created_at`, `updated_at` and the history, never for leases.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// An edge that was written, for an edge sink. The job is as the edge left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// `None` for the insertion of a job.
    pub from: Option<State>,
    pub to: State,
    /// After all edges of the same change. `last_error` has no known secrets, but comes
    /// from outside: an audit entry says that a step failed, and not why.
    pub job: Arc<Job>,
}

pub(crate) fn edges(change: Option<&Change>, job: &Arc<Job>) -> Vec<Edge> {
    let Some(change) = change else {
        return vec![Edge { from: None, to: State::Pending, job: Arc::clone(job) }];
    };
    let starts = std::iter::once(&change.from).chain(&change.edges);
    let edge =
        |(from, to): (&State, &State)| Edge { from: Some(*from), to: *to, job: Arc::clone(job) };
    starts.zip(&change.edges).map(edge).collect()
}

/// What happened to one job of [`retry_failed`]: its id, and the new job.
pub type Retried = (String, Result<Job, Error>);

/// Retries the failed jobs of a page, each under the id that `name` gives it. A name that
/// depends on the job alone makes a repeated call harmless. Jobs whose tenant is busy or
/// ready meanwhile are refused one by one.
pub async fn retry_failed(
    store: &dyn JobStore,
    filter: &Filter,
    name: impl Fn(&Job) -> String + Send,
) -> Result<Vec<Retried>, Error> {
    let filter = Filter { state: Some(State::Failed), ..filter.clone() };
    let failed = store.find(&filter).await?;
    let new: Vec<_> = failed.iter().map(|job| NewJob::retry(job, name(job))).collect();
    let answers = store.upsert_many(&new).await;
    Ok(failed.into_iter().map(|job| job.id).zip(answers).collect())
}

pub(crate) const PAGE: u32 = 100;

/// How long a row that cannot be read is left alone.
pub(crate) const QUARANTINE: Duration = Duration::from_secs(3_600);

impl Control {
    /// Whether it makes sense for the job as it is now.
    pub(crate) fn check(&self, job: &Job) -> Result<(), Error> {
        let (allowed, action) = match self {
            Self::Pause { .. } => (!job.state.is_terminal(), "paused"),
            Self::Resume => (true, "resumed"),
            Self::Cancel { .. } => (!job.state.is_terminal(), "cancelled"),
            Self::Decommission => (job.state == State::Ready, "decommissioned"),
            Self::Recommission => (job.state == State::Ready, "recommissioned"),
            Self::ResolveLeaks => (job.state == State::Failed, "cleared of leaks"),
        };
        let wrong = || Error::WrongState { id: job.id.clone(), state: job.state, action };
        if allowed { Ok(()) } else { Err(wrong()) }
    }
}
