//! A change of one job, as data, and the rules for it: pure, the same for every store.
//!
//! Everything that a worker writes is a [`Change`]: an edge, a checkpoint, the end of a
//! claim. It is written if the job is still in the state that it names, under the claim
//! that it names. So many changes of many jobs are one statement, and a refused one takes
//! no other with it.

use std::time::Duration;

use crate::job::{HistoryEntry, Job, Metadata, NewJob};
use crate::text::{check_metadata, check_object, storable_error};
use crate::{Error, State, validate_transition};

/// A change of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub id: String,
    /// The claim under which it is written. `None` is the plain transition of the
    /// document: refused while a worker holds a live lease.
    pub claim_token: Option<i64>,
    /// The state that the job must be in.
    pub from: State,
    /// The edges to follow, at most two; none for a checkpoint or a release.
    pub edges: Vec<State>,
    /// Replaces all of it; `None` keeps it.
    pub metadata: Option<Metadata>,
    /// Replaces it; `None` keeps it.
    pub last_error: Option<String>,
    pub made: Option<Vec<String>>,
    pub leaked: Option<Vec<String>>,
    pub step_attempts: Option<i32>,
    /// Who writes it, and why, for the history.
    pub worker: Option<String>,
    pub reason: Option<String>,
    /// Pauses the job; `None` keeps a pause as it is.
    pub pause: Option<String>,
    /// Ends the claim; `None` keeps it.
    pub release: Option<Due>,
}

/// When a released job may be claimed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    In(Duration),
    /// When somebody wakes it.
    WhenWoken,
}

impl Change {
    /// A change that changes nothing yet.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        Self { claim_token: Some(job.claim_token), ..Self::plain(&job.id, job.state) }
    }

    pub(crate) fn plain(id: &str, from: State) -> Self {
        Self {
            id: id.to_owned(),
            claim_token: None,
            from,
            edges: Vec::new(),
            metadata: None,
            last_error: None,
            made: None,
            leaked: None,
            step_attempts: None,
            worker: None,
            reason: None,
            pause: None,
            release: None,
        }
    }

    /// The transition of the document.
    #[must_use]
    pub fn transition(
        id: &str,
        from: State,
        to: State,
        metadata: Option<&Metadata>,
        last_error: &str,
    ) -> Self {
        Self {
            edges: vec![to],
            metadata: metadata.cloned(),
            last_error: Some(last_error.to_owned()),
            step_attempts: Some(0),
            release: Some(Due::In(Duration::ZERO)),
            ..Self::plain(id, from)
        }
    }

    /// The state afterwards.
    #[must_use]
    pub fn to(&self) -> State {
        self.edges.last().copied().unwrap_or(self.from)
    }

    /// Whether it says how a step ended, so that the claims before it are not lost ones.
    #[must_use]
    pub fn is_result(&self) -> bool {
        !self.edges.is_empty() || self.release.is_some()
    }

    /// By how much `attempts` grows.
    #[must_use]
    pub fn attempts(&self) -> i32 {
        let forward = self.edges.iter().filter(|to| !matches!(to, State::Cleanup | State::Failed));
        i32::try_from(forward.count()).unwrap_or(i32::MAX)
    }

    /// Checks what can be checked without the job, and makes texts storable.
    pub(crate) fn checked(mut self) -> Result<Self, Error> {
        let mut from = self.from;
        for to in &self.edges {
            validate_transition(from, *to)?;
            from = *to;
        }
        if let Some(metadata) = &self.metadata {
            check_metadata(metadata)?;
        }
        for error in [&mut self.last_error, &mut self.reason, &mut self.pause].into_iter().flatten()
        {
            *error = storable_error(error);
        }
        for object in [&self.made, &self.leaked].into_iter().flatten().flatten() {
            check_object(object)?;
        }
        Ok(self)
    }

    /// The entries of the history; the store adds the time.
    pub(crate) fn history(&self) -> Vec<HistoryEntry> {
        let starts = std::iter::once(&self.from).chain(&self.edges);
        let entries = starts.zip(&self.edges).map(|(from, to)| HistoryEntry {
            from: from.to_string(),
            to: to.to_string(),
            at: 0,
            worker: self.worker.clone(),
            error: self.reason.clone(),
        });
        entries.collect()
    }
}

/// Whether the change may be written to the job as it is now.
///
/// A change that a store reports as not written may have been written all the same, by a
/// commit whose answer got lost: then the job is as the change leaves it, under the same
/// claim, and the repetition succeeds.
pub(crate) fn admit(change: &Change, job: Option<&Job>) -> Result<Admitted, Error> {
    let id = change.id.clone();
    let Some(job) = job else { return Err(Error::JobNotFound { id }) };
    let stale = || Error::StaleRead { id: id.clone(), expected: change.from, found: job.state };
    match change.claim_token {
        Some(token) if token == job.claim_token => {
            let released = job.claimed_by.is_none();
            if released && change.release.is_some() && job.state == change.to() {
                return Ok(Admitted::AlreadyWritten);
            }
            if released {
                return Err(Error::ClaimLost { id });
            }
            if job.state == change.from {
                return Ok(Admitted::Write);
            }
            let written = !change.edges.is_empty() && job.state == change.to();
            if written && change.release.is_none() {
                Ok(Admitted::AlreadyWritten)
            } else {
                Err(stale())
            }
        }
        Some(_) => Err(Error::ClaimLost { id }),
        None if job.state != change.from => Err(stale()),
        None if job.is_leased => Err(Error::Leased { id }),
        None => Ok(Admitted::Write),
    }
}

/// See [`admit`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    Write,
    AlreadyWritten,
}

/// What to do about a new job.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The id is known: the job as it is.
    Existing,
    Insert,
}

/// Whether a new job is admitted beside the known ones: those with its id, with the id
/// that it retries, and all of its tenant.
pub(crate) fn admission<'a>(
    new: &NewJob,
    known: impl Iterator<Item = &'a Job> + Clone,
) -> Result<Admission, Error> {
    if let Some(same) = known.clone().find(|job| job.id == new.id) {
        let mismatch = Error::TenantMismatch { id: new.id.clone() };
        return if same.tenant_id == new.tenant_id {
            Ok(Admission::Existing)
        } else {
            Err(mismatch)
        };
    }
    if let Some(of) = &new.retry_of {
        let Some(failed) = known.clone().find(|job| job.id == *of) else {
            return Err(Error::JobNotFound { id: of.clone() });
        };
        if failed.tenant_id != new.tenant_id {
            return Err(Error::TenantMismatch { id: of.clone() });
        }
        if failed.state != State::Failed {
            let (id, state) = (of.clone(), failed.state);
            return Err(Error::WrongState { id, state, action: "retried" });
        }
    }
    let mut of_tenant = known.filter(|job| job.tenant_id == new.tenant_id);
    let refusal = of_tenant.find_map(|job| {
        let (tenant, id) = (new.tenant_id.clone(), job.id.clone());
        match job.state {
            State::Ready if job.decommissioned_at.is_none() => {
                Some(Error::TenantReady { tenant, job: id })
            }
            State::Failed if !job.leaked.is_empty() && new.retry_of.as_ref() != Some(&job.id) => {
                Some(Error::TenantLeaks { tenant, job: id })
            }
            State::Ready | State::Failed => None,
            _ => Some(Error::TenantBusy { tenant, job: id }),
        }
    });
    refusal.map_or(Ok(Admission::Insert), Err)
}

/// Whether a decommissioned tenant may be ready again, beside the other jobs of it that are
/// known. A job that was decommissioned before this one is older than it: none is admitted
/// while the tenant is ready.
pub(crate) fn recommission<'a>(
    job: &Job,
    known: impl Iterator<Item = &'a Job>,
) -> Result<(), Error> {
    let Some(gone) = job.decommissioned_at else { return Ok(()) };
    let mut others = known.filter(|other| other.tenant_id == job.tenant_id && other.id != job.id);
    let newer = others.find(|other| match other.state {
        State::Ready => other.decommissioned_at.is_none_or(|later| later >= gone),
        State::Failed => !other.leaked.is_empty(),
        _ => true,
    });
    let replaced = |newer: &Job| {
        let (tenant, job) = (job.tenant_id.clone(), newer.id.clone());
        Err(Error::TenantReplaced { tenant, job })
    };
    newer.map_or(Ok(()), replaced)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn mk_job(id: &str, tenant: &str, state: State) -> Job {
        Job {
            state,
            claimed_by: Some("w".to_owned()),
            is_leased: true,
            claim_token: 3,
            ..NewJob::new(id, tenant).as_job(SystemTime::UNIX_EPOCH)
        }
    }

    #[test]
    fn attempts_grow_with_forward_edges_only() {
        let edge = |from, to| Change::transition("j", from, to, None, "").attempts();
        assert_eq!(edge(State::Pending, State::SchemaCreated), 1);
        assert_eq!(edge(State::Pending, State::Cleanup), 0);
        assert_eq!(edge(State::Cleanup, State::Failed), 0);
        let both = Change {
            edges: vec![State::Seeded, State::Ready],
            ..Change::of(&mk_job("j", "t", State::Migrated))
        };
        assert_eq!((both.attempts(), both.to(), both.history().len()), (2, State::Ready, 2));
    }

    #[test]
    fn a_repeated_change_finds_itself_written() {
        let before = mk_job("j", "t", State::Pending);
        let edge = Change { edges: vec![State::SchemaCreated], ..Change::of(&before) };
        let after = Job { state: State::SchemaCreated, ..before.clone() };
        assert_eq!(admit(&edge, Some(&after)), Ok(Admitted::AlreadyWritten));
        let last = Change { release: Some(Due::WhenWoken), ..edge.clone() };
        assert!(admit(&last, Some(&after)).is_err(), "that one is still claimed");
        let released = Job { claimed_by: None, ..after };
        assert_eq!(admit(&last, Some(&released)), Ok(Admitted::AlreadyWritten));
        let other = Job { claim_token: 4, ..before };
        assert_eq!(admit(&edge, Some(&other)).unwrap_err().code(), "claim_lost");
    }

    fn jobs() -> impl Strategy<Value = Vec<Job>> {
        let job = (select(&State::ALL[..]), 0_u8..2, any::<bool>(), any::<bool>());
        prop::collection::vec(job, 0..5).prop_map(|jobs| {
            let jobs = jobs.into_iter().enumerate();
            let job = |(n, (state, tenant, leaks, gone)): (usize, (State, u8, bool, bool))| Job {
                leaked: if leaks { vec!["schema".to_owned()] } else { Vec::new() },
                decommissioned_at: gone.then_some(SystemTime::UNIX_EPOCH),
                ..mk_job(&format!("j{n}"), &format!("t{tenant}"), state)
            };
            jobs.map(job).collect()
        })
    }

    #[test]
    fn a_tenant_comes_back_only_beside_older_jobs() {
        let at = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let ready =
            |id: &str, gone| Job { decommissioned_at: gone, ..mk_job(id, "t", State::Ready) };
        let back = ready("b", at(5));
        let beside = |other: Job| recommission(&back, [&back, &other].into_iter());
        for newer in [ready("x", None), ready("x", at(9)), mk_job("x", "t", State::Migrated)] {
            let named = Error::TenantReplaced { tenant: "t".to_owned(), job: "x".to_owned() };
            assert_eq!(beside(newer), Err(named));
        }
        let leaked = vec!["schema".to_owned()];
        assert!(beside(Job { leaked, ..mk_job("x", "t", State::Failed) }).is_err());
        let older =
            [ready("x", at(4)), mk_job("x", "t", State::Failed), mk_job("x", "u", State::Ready)];
        assert!(older.into_iter().all(|older| beside(older).is_ok()));
        assert_eq!(recommission(&ready("b", None), [&back].into_iter()), Ok(()), "it is ready");
    }

    proptest! {
        /// No job is ever admitted beside a live tenant, an unfinished job or a leak.
        #[test]
        fn a_tenant_is_never_provisioned_twice(jobs in jobs(), retry in prop::option::of(0_usize..5)) {
            let mut new = NewJob::new("new", "t0");
            new.retry_of = retry.map(|n| format!("j{n}"));
            let admitted = matches!(admission(&new, jobs.iter()), Ok(Admission::Insert));
            let blocks = |job: &&Job| job.tenant_id == "t0" && match job.state {
                State::Ready => job.decommissioned_at.is_none(),
                State::Failed => !job.leaked.is_empty() && new.retry_of.as_ref() != Some(&job.id),
                _ => true,
            };
            if admitted {
                prop_assert_eq!(jobs.iter().find(blocks), None);
            } else if new.retry_of.is_none() {
                prop_assert!(jobs.iter().any(|job| blocks(&job)));
            }
        }

        /// Under no other claim and from no other state is anything written.
        #[test]
        fn a_late_worker_writes_nothing(
            state in select(&State::ALL[..]), token in 0_i64..6, claimed: bool, release: bool,
        ) {
            let change = Change {
                edges: vec![State::SchemaCreated],
                release: release.then_some(Due::WhenWoken),
                ..Change::of(&mk_job("j", "t", State::Pending))
            };
            let claimed_by = claimed.then(|| "w".to_owned());
            let job = Job { claim_token: token, claimed_by, ..mk_job("j", "t", state) };
            if admit(&change, Some(&job)) == Ok(Admitted::Write) {
                prop_assert!(token == 3 && claimed && state == State::Pending);
            }
        }
    }
}
