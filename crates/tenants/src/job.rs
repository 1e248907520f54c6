//! A job: one try to provision one tenant.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::text::{check_id, check_metadata};
use crate::{Error, State};

/// What steps want to find again after a crash. It is stored in plain text: no secrets,
/// only references to them.
pub type Metadata = BTreeMap<String, String>;

/// The leak record of a job whose steps recorded nothing.
pub(crate) const UNRECORDED: &str = "what its steps made: they recorded nothing";

/// What a retry takes over of a job's [`leaked`](Job::leaked). The record that nothing was recorded
/// names no object: no cleanup could remove it, and every retry would leak it anew.
#[must_use]
pub fn left_behind(leaked: &[String]) -> Vec<String> {
    leaked.iter().filter(|object| *object != UNRECORDED).cloned().collect()
}

/// The stored record. The first eight fields are the documented columns; the others have
/// defaults, so that a row that another program inserted is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The idempotency key: the same id always means the same job.
    pub id: String,
    pub tenant_id: String,
    pub state: State,
    /// One more with each edge, except those to `cleanup` and `failed`.
    pub attempts: i32,
    /// Why the last step failed; empty if it did not. Bounded, and without secrets.
    pub last_error: String,
    pub metadata: Metadata,
    pub created_at: SystemTime,
    pub updated_at: SystemTime,

    /// The group that the job is claimed with, such as a project; empty unless given.
    pub partition: String,
    /// The failed job that this one repeats.
    pub retry_of: Option<String>,
    /// How often the current step failed in a row.
    pub step_attempts: i32,
    /// When the job may be claimed; `None` while it waits to be woken, or is over. Of a
    /// claimed job it is the end of the lease.
    pub not_before: Option<SystemTime>,
    /// The worker that has claimed it; its lease may be over.
    pub claimed_by: Option<String>,
    /// Whether the lease of that worker lasts, by the clock of the database.
    pub is_leased: bool,
    /// One more with each claim. Steps that write elsewhere write it there too, and refuse
    /// a lower one.
    pub claim_token: i64,
    /// Claims before the current one under which the current step began and gave no result:
    /// their workers died, or lost their leases.
    pub lost_claims: i64,
    /// What the steps recorded before they made it, the oldest first. `None` if another
    /// program inserted the row, so that nobody knows.
    pub made: Option<Vec<String>>,
    /// The leak record: what cleanup could not remove. Empty once it is resolved or a retry
    /// has taken it over.
    pub leaked: Vec<String>,
    /// Every edge that this crate wrote, the oldest first; the graph has no cycle, so there
    /// are seven at most.
    pub history: Vec<HistoryEntry>,
    /// Why nobody may start a step of it; cleanup goes on all the same.
    pub paused: Option<String>,
    /// Why it is to be cleaned up instead of going on.
    pub cancelled: Option<String>,
    /// Since when a ready tenant no longer is; a new job for it is then admitted.
    pub decommissioned_at: Option<SystemTime>,
}

/// An edge of the past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub from: String,
    pub to: String,
    /// Microseconds since the Unix epoch.
    #[serde(default)]
    pub at: i64,
    /// The worker, if it was not a plain transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Why, for the edges to `cleanup` and `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What [`StateStore::upsert`](crate::StateStore::upsert) is given. State, attempts and
/// times of a new job are the store's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    pub id: String,
    pub tenant_id: String,
    pub metadata: Metadata,
    pub partition: String,
    pub retry_of: Option<String>,
}

impl NewJob {
    #[must_use]
    pub fn new(id: impl Into<String>, tenant_id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            tenant_id: tenant_id.into(),
            metadata: Metadata::new(),
            partition: String::new(),
            retry_of: None,
        }
    }

    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }

    #[must_use]
    pub fn in_partition(mut self, partition: impl Into<String>) -> Self {
        self.partition = partition.into();
        self
    }

    /// A new try of a failed job, under an id of its own. It takes over what that one left
    /// behind: its steps may find it, and its cleanup removes it.
    #[must_use]
    pub fn retry(failed: &Job, id: impl Into<String>) -> Self {
        Self {
            retry_of: Some(failed.id.clone()),
            ..Self::new(id, failed.tenant_id.clone())
                .with_metadata(failed.metadata.clone())
                .in_partition(failed.partition.clone())
        }
    }

    /// The job when it is inserted.
    pub(crate) fn as_job(&self, now: SystemTime) -> Job {
        Job {
            id: self.id.clone(),
            tenant_id: self.tenant_id.clone(),
            state: State::Pending,
            attempts: 0,
            last_error: String::new(),
            metadata: self.metadata.clone(),
            created_at: now,
            updated_at: now,
            partition: self.partition.clone(),
            retry_of: self.retry_of.clone(),
            step_attempts: 0,
            not_before: None,
            claimed_by: None,
            is_leased: false,
            claim_token: 0,
            lost_claims: 0,
            made: Some(Vec::new()),
            leaked: Vec::new(),
            history: Vec::new(),
            paused: None,
            cancelled: None,
            decommissioned_at: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_id("id", &self.id)?;
        check_id("tenant_id", &self.tenant_id)?;
        if !self.partition.is_empty() {
            check_id("partition", &self.partition)?;
        }
        if let Some(of) = &self.retry_of {
            check_id("retry_of", of)?;
        }
        check_metadata(&self.metadata)
    }
}
