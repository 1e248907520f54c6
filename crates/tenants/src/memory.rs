//! A store in memory, for tests and as the shortest example of a store. It decides by the
//! same rules as the others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use slipway_durable::claim::{Claim, Demand};

use crate::change::{Admission, Admitted, Change, Due, admission, admit, recommission};
use crate::job::{Job, Metadata, NewJob, left_behind};
use crate::store::{ClaimFrom, Clock, Control, Edge, Filter, JobStore, PAGE, StateStore, edges};
use crate::text::storable_error;
use crate::{Error, State};

/// An edge sink of [`MemoryStore`]; an error refuses the change.
pub type MemorySink = Arc<dyn Fn(&[Edge]) -> Result<(), String> + Send + Sync>;

/// Jobs in memory. A clone has the same jobs.
#[derive(Clone)]
pub struct MemoryStore {
    rows: Arc<Mutex<BTreeMap<String, Row>>>,
    clock: Clock,
    started: (Instant, SystemTime),
    sink: Option<MemorySink>,
}

#[derive(Debug, Clone)]
struct Row {
    job: Job,
    due: Option<Instant>,
    lease_until: Option<Instant>,
    wake: u64,
    claimed_wake: u64,
    /// The last claim that gave a result.
    result_token: i64,
}

impl Row {
    fn is_leased(&self) -> bool {
        self.lease_until.is_some_and(|until| until > Instant::now())
    }

    fn is_due(&self) -> bool {
        let due = self.due.is_some_and(|due| due <= Instant::now());
        due && !self.job.state.is_terminal() && !self.is_leased()
    }

    fn wake(&mut self) {
        self.wake += 1;
        if !self.is_leased() {
            self.due = Some(Instant::now());
        }
    }

    /// The job with what depends on the time. `started` is one moment on both clocks.
    fn shown(&self, started: (Instant, SystemTime)) -> Job {
        let due = self.due.filter(|_| !self.job.state.is_terminal());
        let not_before = due.map(|due| started.1 + due.saturating_duration_since(started.0));
        let current = i64::from(self.job.claimed_by.is_some());
        let lost_claims = (self.job.claim_token - self.result_token - current).max(0);
        Job { not_before, is_leased: self.is_leased(), lost_claims, ..self.job.clone() }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        #[expect(clippy::disallowed_methods, reason = "without a database this is the clock")]
        let clock = SystemTime::now;
        let started = (Instant::now(), clock());
        Self { rows: Arc::default(), clock: Arc::new(clock), started, sink: None }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("jobs", &self.rows().len()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the times of jobs from this clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Tells this about every edge before it is kept.
    #[must_use]
    pub fn with_sink(self, sink: MemorySink) -> Self {
        Self { sink: Some(sink), ..self }
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, Row>> {
        // Every change of a row is complete before anything can panic.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, change: Option<&Change>, job: &Job) -> Result<(), Error> {
        let edges = edges(change, &Arc::new(job.clone()));
        match &self.sink {
            Some(sink) if !edges.is_empty() => sink(&edges).map_err(Error::Database),
            _ => Ok(()),
        }
    }

    fn insert(&self, rows: &mut BTreeMap<String, Row>, new: &NewJob) -> Result<Job, Error> {
        new.check()?;
        let now = (self.clock)();
        if let Admission::Existing = admission(new, rows.values().map(|row| &row.job))? {
            return Ok(rows[&new.id].shown(self.started));
        }
        let inherited = new.retry_of.as_ref().and_then(|of| rows.get(of));
        let made = inherited.map_or_else(Vec::new, |row| left_behind(&row.job.leaked));
        let job = Job { made: Some(made), ..new.as_job(now) };
        self.tell(None, &job)?;
        if let Some(old) = new.retry_of.as_ref().and_then(|of| rows.get_mut(of)) {
            old.job.leaked.clear();
        }
        let due = Some(Instant::now());
        let row = Row { job, due, lease_until: None, wake: 0, claimed_wake: 0, result_token: 0 };
        let shown = row.shown(self.started);
        rows.insert(new.id.clone(), row);
        Ok(shown)
    }

    fn apply(&self, rows: &mut BTreeMap<String, Row>, change: &Change) -> Result<Job, Error> {
        let change = change.clone().checked()?;
        let now = (self.clock)();
        let current = rows.get(&change.id).map(|row| row.shown(self.started));
        if admit(&change, current.as_ref())? == Admitted::AlreadyWritten {
            return current.ok_or(Error::JobNotFound { id: change.id });
        }
        let mut row = rows[&change.id].clone();
        let job = &mut row.job;
        job.state = change.to();
        job.attempts += change.attempts();
        job.updated_at = now.max(job.updated_at);
        if let Some(error) = &change.last_error {
            job.last_error.clone_from(error);
        }
        if let Some(metadata) = &change.metadata {
            job.metadata.clone_from(metadata);
        }
        if let Some(pause) = &change.pause {
            job.paused = Some(pause.clone());
        }
        if let Some(made) = &change.made {
            job.made = Some(made.clone());
        }
        if let Some(leaked) = &change.leaked {
            job.leaked.clone_from(leaked);
        }
        if let Some(failures) = change.step_attempts {
            job.step_attempts = failures;
        }
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        job.history.extend(change.history().into_iter().map(|mut entry| {
            entry.at = at;
            entry
        }));
        if change.claim_token.is_none() {
            job.claim_token += 1;
        }
        if change.is_result() {
            // The claim goes on in the next step, and may be lost there.
            row.result_token = job.claim_token - i64::from(change.release.is_none());
        }
        if let Some(due) = change.release {
            job.claimed_by = None;
            row.lease_until = None;
            row.due = match due {
                _ if row.job.state.is_terminal() => None,
                _ if row.wake != row.claimed_wake => Some(Instant::now()),
                Due::In(after) => Some(Instant::now() + after),
                Due::WhenWoken => None,
            };
        }
        let shown = row.shown(self.started);
        self.tell(Some(&change), &shown)?;
        rows.insert(change.id, row);
        Ok(shown)
    }
}

#[async_trait]
impl StateStore for MemoryStore {
    async fn get(&self, id: &str) -> Result<Job, Error> {
        let found = self.rows().get(id).map(|row| row.shown(self.started));
        found.ok_or_else(|| Error::JobNotFound { id: id.to_owned() })
    }

    async fn upsert(&self, job: &NewJob) -> Result<Job, Error> {
        self.insert(&mut self.rows(), job)
    }

    async fn transition(
        &self,
        id: &str,
        from: State,
        to: State,
        metadata: Option<&Metadata>,
        last_error: &str,
    ) -> Result<(), Error> {
        let change = Change::transition(id, from, to, metadata, last_error);
        self.apply(&mut self.rows(), &change).map(drop)
    }

    async fn create_table(&self) -> Result<(), Error> {
        Ok(())
    }
}

#[async_trait]
impl JobStore for MemoryStore {
    async fn upsert_many(&self, jobs: &[NewJob]) -> Vec<Result<Job, Error>> {
        let mut rows = self.rows();
        jobs.iter().map(|job| self.insert(&mut rows, job)).collect()
    }

    async fn claim(&self, from: ClaimFrom<'_>, demand: Demand<'_>) -> Result<Vec<Job>, Error> {
        let mut rows = self.rows();
        let wanted = |row: &&mut Row| match from {
            ClaimFrom::Partition(partition) => row.job.partition == partition,
            ClaimFrom::Job(id) => row.job.id == id,
        };
        let mut due: Vec<_> = rows.values_mut().filter(wanted).filter(|row| row.is_due()).collect();
        due.sort_by_key(|row| row.due);
        due.truncate(usize::try_from(demand.limit).unwrap_or(usize::MAX));
        let claimed = due.into_iter().map(|row| {
            row.job.claim_token += 1;
            row.job.claimed_by = Some(demand.worker.to_owned());
            row.claimed_wake = row.wake;
            row.lease_until = Some(Instant::now() + demand.lease);
            row.due = row.lease_until;
            row.shown(self.started)
        });
        Ok(claimed.collect())
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[Claim<String>],
        lease: Duration,
    ) -> Result<Vec<String>, Error> {
        let mut rows = self.rows();
        let mut renewed = Vec::new();
        for Claim { key, claim_token } in claims {
            let Some(row) = rows.get_mut(key) else { continue };
            let held = row.job.claimed_by.as_deref() == Some(worker);
            if held && row.job.claim_token == *claim_token {
                row.lease_until = Some(Instant::now() + lease);
                row.due = row.lease_until;
                renewed.push(key.clone());
            }
        }
        Ok(renewed)
    }

    async fn write(&self, changes: &[Change]) -> Vec<Result<Job, Error>> {
        let mut rows = self.rows();
        changes.iter().map(|change| self.apply(&mut rows, change)).collect()
    }

    async fn control(&self, id: &str, control: &Control) -> Result<Job, Error> {
        let now = (self.clock)();
        let mut rows = self.rows();
        let missing = || Error::JobNotFound { id: id.to_owned() };
        let job = &rows.get(id).ok_or_else(missing)?.job;
        control.check(job)?;
        if *control == Control::Recommission {
            recommission(job, rows.values().map(|row| &row.job))?;
        }
        let row = rows.get_mut(id).ok_or_else(missing)?;
        let job = &mut row.job;
        match control {
            Control::Pause { reason } => job.paused = Some(storable_error(reason)),
            Control::Resume => job.paused = None,
            Control::Cancel { reason } => job.cancelled = Some(storable_error(reason)),
            Control::Decommission => {
                job.decommissioned_at.get_or_insert(now);
            }
            Control::Recommission => job.decommissioned_at = None,
            Control::ResolveLeaks => job.leaked.clear(),
        }
        row.wake();
        Ok(row.shown(self.started))
    }

    async fn find(&self, filter: &Filter) -> Result<Vec<Job>, Error> {
        let limit = if filter.limit == 0 { PAGE } else { filter.limit };
        let rows = self.rows();
        let found = rows.values().filter(|Row { job, .. }| {
            filter.state.is_none_or(|state| job.state == state)
                && filter.tenant_id.as_ref().is_none_or(|tenant| job.tenant_id == *tenant)
                && filter.partition.as_ref().is_none_or(|partition| job.partition == *partition)
                && filter.after.as_ref().is_none_or(|after| job.id > *after)
                && (!filter.leaked || !job.leaked.is_empty())
        });
        Ok(found
            .take(usize::try_from(limit).unwrap_or(0))
            .map(|row| row.shown(self.started))
            .collect())
    }

    async fn due_partitions(&self) -> Result<Vec<String>, Error> {
        let rows = self.rows();
        let mut oldest: BTreeMap<&str, Option<Instant>> = BTreeMap::new();
        for row in rows.values().filter(|row| row.is_due()) {
            let due = oldest.entry(&row.job.partition).or_insert(row.due);
            *due = (*due).min(row.due);
        }
        let mut partitions: Vec<_> = oldest.into_iter().collect();
        partitions.sort_by_key(|(_, due)| *due);
        Ok(partitions.into_iter().map(|(partition, _)| partition.to_owned()).collect())
    }
}
