//! How an executor works.

use std::sync::Arc;
use std::time::Duration;

use slipway_durable::Backoff;

use crate::steps::Pause;
use crate::{Job, Step, random};

/// The settings of an executor; [`Options::default`] suits steps that take seconds.
#[derive(Debug, Clone)]
pub struct Options {
    /// The name under which it claims jobs. Unique among all that share the table.
    pub worker: String,
    /// How long a claim lasts without a heartbeat, and so how long the job of a dead worker
    /// waits. A heartbeat is sent three times in it.
    pub lease: Duration,
    /// How long one call of each step may take, in the order of [`Step::ALL`].
    pub deadlines: [Duration; 5],
    /// How long one run may take. It starts no step beyond that, except cleanup.
    pub total: Duration,
    /// How often a step may fail in a row by transient errors, and how often an edge may be
    /// refused before the job waits for somebody.
    pub step_attempts: i32,
    /// How often cleanup is tried before what it should have removed is a leak.
    pub cleanup_attempts: i32,
    /// How many claims in a row may end in one step without a result. A step that kills its
    /// process, or outlasts its lease, then counts as failed for good.
    pub lost_claims: i64,
    /// How long a job is parked after a transient error.
    pub backoff: Backoff,
    /// How long a permit may take; after it the answer is no.
    pub permit_limit: Duration,
    /// How long a job is parked while everything is paused.
    pub pause_poll: Duration,
    /// Sets of changes that are written at the same time; fewer than the store has connections,
    /// since claims and heartbeats need some. While one set is flushed to the disk another one
    /// is computed.
    pub writers: usize,
    pub pause: Option<Arc<dyn Pause>>,
    /// Jobs that are not cleaned up by themselves. A step of such a job that failed for good holds
    /// it: it waits until a person resumes it, or cancels it and so asks for the cleanup.
    pub keep: fn(&Job) -> bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            worker: random::worker(),
            lease: Duration::from_secs(60),
            deadlines: [Duration::from_secs(300); 5],
            total: Duration::from_secs(30 * 60),
            step_attempts: 8,
            cleanup_attempts: 3,
            lost_claims: 8,
            backoff: Backoff { base: Duration::from_secs(1), max: Duration::from_secs(300) },
            permit_limit: Duration::from_secs(10),
            pause_poll: Duration::from_secs(15),
            writers: 4,
            pause: None,
            keep: |_| false,
        }
    }
}

impl Options {
    /// The same with this deadline for a step.
    #[must_use]
    pub fn with_deadline(mut self, step: Step, deadline: Duration) -> Self {
        self.deadlines[step.index()] = deadline;
        self
    }
}
