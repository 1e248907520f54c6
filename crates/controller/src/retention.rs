//! The retention loop: removes events, histories, audit entries, plans, records of
//! deletions and leaks, reports of agents, and faults of files that were kept long enough, and
//! the middle of histories and series of objects that are too long. What counts as work is one periodic task, which one
//! replica claims at a time. The store's statements and the rules in
//! `slipway_core::events::positions` decide what may be removed.
//!
//! It removes in small batches with a commit each, and releases the task when
//! its lease runs low; the rest is then due at once. Two replicas that did this
//! at the same time would do no harm, only duplicate work.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::ports::store::Error;
use slipway_core::broker::history::HISTORY_BOUNDS;
use slipway_core::fleet::object::KEPT_OBJECTS;
use slipway_durable::{EarlierClaims, Lease};

use crate::driver::{Failure, Loop, Pacing};
use crate::periodic::{ClaimedTask, Tasks};

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Since the event happened.
    pub events: Duration,
    /// Since the resource is gone.
    pub history: Duration,
    /// Since the entry was written, if its subject is gone; since a deletion was purged,
    /// cancelled or restored, a leak was resolved, a roll-out ended, and an agent last repeated
    /// a report.
    pub audit: Duration,
}

/// The loop over old rows.
#[derive(Debug)]
pub struct RetentionLoop {
    context: Context,
    retention: Retention,
    tasks: Tasks,
}

/// How many rows were removed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pruned {
    events: u64,
    history: u64,
    audit: u64,
    plans: u64,
    deletions: u64,
    rollouts: u64,
    file_faults: u64,
    objects: u64,
    reports: u64,
}

impl RetentionLoop {
    pub const NAME: &'static str = "retention";
    /// Nothing wakes this loop and nothing waits for it; a poll every few
    /// seconds finds the task after its worker died.
    pub const PACING: Pacing = Pacing { slots: 1, batch: 1, poll: Duration::from_secs(5) };
    const LEASE: Duration = Duration::from_secs(30);
    /// Rows are kept for days, so once an hour is enough.
    const INTERVAL: Duration = Duration::from_secs(3_600);
    /// The delay after a start, so that a busy boot comes first.
    const FIRST: Duration = Duration::from_secs(60);
    const AFTER_FAULT: Duration = Duration::from_secs(60);
    /// Rows in one transaction: some ten milliseconds of SQLite's only writer.
    const BATCH: u32 = 500;
    /// Plans in one transaction: each may name ten thousand members.
    const PLANS: u32 = 20;
    /// Roll-outs likewise.
    const ROLLOUTS: u32 = 5;
    /// Stacks whose superseded objects one transaction looks for.
    const STACKS: u32 = 200;
    /// How long the faults of a source are kept that nobody applies any more.
    const FAULTS: Duration = Duration::from_secs(30 * 24 * 3_600);
    /// The time that one batch may take; with less lease left, none starts.
    const BATCH_LIMIT: Duration = Duration::from_secs(10);

    pub fn new(context: Context, retention: Retention, worker: String) -> Self {
        // It acts on the database alone. A statement that outlives this process
        // removes what is past its retention anyway.
        let earlier_claims = EarlierClaims::TakenBack;
        let tasks = Tasks::new(context.stores.clone(), worker, Self::LEASE, earlier_claims);
        Self { context, retention, tasks }
    }

    /// Removes old rows. `false` if the lease ran low first.
    async fn prune(&self, lease: &Lease, pruned: &mut Pruned) -> Result<bool, Error> {
        let store = &self.context.stores;
        let time_is_left = || lease.allows(Self::BATCH_LIMIT);
        while time_is_left() {
            match store.events.event_prune(self.retention.events, Self::BATCH).await? {
                0 => break,
                removed => pruned.events += removed,
            }
        }
        while time_is_left() {
            match store.broker.history_prune(self.retention.history, Self::BATCH).await? {
                0 => break,
                removed => pruned.history += removed,
            }
        }
        let mut from = None;
        while time_is_left() {
            let step = store.broker.history_trim(HISTORY_BOUNDS, from, Self::BATCH).await?;
            pruned.history += step.removed;
            from = step.next;
            if from.is_none() {
                break;
            }
        }
        while time_is_left() {
            match store.deletion.plan_prune(Self::PLANS).await? {
                0 => break,
                removed => pruned.plans += removed,
            }
        }
        while time_is_left() {
            match store.deletion.deletion_prune(self.retention.audit, Self::BATCH).await? {
                0 => break,
                removed => pruned.deletions += removed,
            }
        }
        while time_is_left() {
            match store.rollouts.rollout_prune(self.retention.audit, Self::ROLLOUTS).await? {
                0 => break,
                removed => pruned.rollouts += removed,
            }
        }
        while time_is_left() {
            match store.files.faults_prune(Self::FAULTS, Self::BATCH).await? {
                0 => break,
                removed => pruned.file_faults += removed,
            }
        }
        let mut from = None;
        while time_is_left() {
            let step = store.fleet.object_prune(KEPT_OBJECTS, from, Self::STACKS).await?;
            pruned.objects += step.removed;
            from = step.next;
            if from.is_none() {
                break;
            }
        }
        while time_is_left() {
            match store.fleet.report_prune(self.retention.audit, Self::BATCH).await? {
                0 => break,
                removed => pruned.reports += removed,
            }
        }
        let mut after = None;
        while time_is_left() {
            let step = store.access.audit_prune(self.retention.audit, after, Self::BATCH).await?;
            pruned.audit += step.removed;
            if step.next.is_none() {
                return Ok(true);
            }
            after = step.next;
        }
        Ok(false)
    }
}

#[async_trait]
impl Loop for RetentionLoop {
    type Item = ClaimedTask;

    fn lease(&self) -> Duration {
        self.tasks.lease()
    }

    async fn claim(&self, _limit: u32) -> Result<Vec<ClaimedTask>, Failure> {
        self.tasks.ensure(Self::NAME, Self::FIRST).await?;
        Ok(self.tasks.claim(Self::NAME.to_owned()).await?.into_iter().collect())
    }

    async fn work(&self, items: Vec<ClaimedTask>, lease: Lease) -> Vec<String> {
        let mut errors = Vec::new();
        for task in items {
            let mut pruned = Pruned::default();
            let outcome = self.prune(&lease, &mut pruned).await;
            if pruned != Pruned::default() {
                tracing::info!(?pruned, "pruned what is past its retention");
            }
            let (next, error) = match outcome {
                Ok(true) => (Self::INTERVAL, None),
                Ok(false) => (Duration::ZERO, None),
                Err(error) => (Self::AFTER_FAULT, Some(error.to_string())),
            };
            errors.extend(self.tasks.release(&task, next, error.into_iter().collect()).await);
        }
        errors
    }
}
