//! The resource loop: takes provisioned resources one step towards Ready, or
//! out. What counts as work is a row whose `due_at` has passed: it was woken,
//! it waits for something, or it is its turn in the sweep (a settled row is
//! due again one sweep interval after it was last looked at). What the steps
//! are is decided in `slipway_core`, what is done in
//! `slipway_app::usecases::converge`.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt, stream};
use slipway_app::Context;
use slipway_app::ports::store::{Claimed, CorruptRow};
use slipway_app::usecases::converge::{self, Batch, Engines, Planned, Ticked};
use slipway_core::audit::Actor;
use slipway_core::commit::{Recheck, Release};
use slipway_core::ids::Lane;
use slipway_core::rules::record::{Outcome, Pace};
use slipway_core::snapshot::ResourceSnapshot;
use slipway_durable::Lease;

use crate::driver::{Loop, Pacing};
use crate::status::Status;

/// The loop over provisioned resources.
#[derive(Debug)]
pub struct ResourceLoop {
    context: Context,
    engines: Engines,
    worker: String,
    lane: Lane,
    lease: Duration,
    pace: Pace,
    actor: Actor,
    batching: Batching,
}

/// How records share transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// Records in one transaction, at most; no fewer than a batch has shares
    /// the cost of a commit best.
    pub records_per_commit: usize,
    /// Transactions of one batch under way at once. Two, so that what is done
    /// meanwhile does not wait for the commit before.
    pub commits_at_once: usize,
}

impl Default for Batching {
    fn default() -> Self {
        Self { records_per_commit: 256, commits_at_once: 2 }
    }
}

/// Whether the loop keeps up, for `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub ok: bool,
    pub detail: String,
}

impl ResourceLoop {
    pub const NAME: &'static str = "resources";
    /// The probe's published name.
    pub const PROBE: &'static str = "provisioning-broker-reconcile";
    /// How the driver paces this loop. Eight batches under way keep the database
    /// busy while others wait for an answer or a commit; a batch is small enough
    /// that its outside actions, 16 at once, fit into two thirds of a lease if
    /// they take up to 2.5 s each. The poll is what an enrolment at another
    /// replica waits for at most; with a tick after it, it stays under 250 ms.
    pub const PACING: Pacing = Pacing {
        slots: 1_024,
        batch: 128,
        poll: Duration::from_millis(200),
        lease: Duration::from_secs(30),
    };
    /// Objects of one batch that are acted on at once.
    const CONCURRENCY: usize = 16;
    /// How soon a tick that failed inside us is tried again.
    const AFTER_FAULT: Duration = Duration::from_secs(1);

    pub fn new(
        context: Context,
        engines: Engines,
        worker: String,
        lane: Lane,
        lease: Duration,
        sweep: Duration,
    ) -> Self {
        let pace = Pace { deadlines: context.settings.deadlines, sweep };
        let actor = Actor::new(format!("loop:{}", Self::NAME));
        let batching = Batching::default();
        Self { context, engines, worker, lane, lease, pace, actor, batching }
    }

    /// The same loop with other batching; for benchmarks and tests.
    #[must_use]
    pub fn with_batching(self, batching: Batching) -> Self {
        Self { batching, ..self }
    }

    /// Takes back what an earlier life of this worker held, and makes
    /// everything that is not settled for good due now.
    pub async fn boot_sweep(&self) -> Result<u64, slipway_app::ports::store::Error> {
        self.context.store.attempt_reclaim(&self.worker).await?;
        self.context.store.attempt_wake_all(self.lane).await
    }

    /// Fails when due work could not be looked for, or was left lying, for
    /// longer than three sweep intervals.
    pub async fn probe(&self, status: &Status) -> Probe {
        let limit = self.pace.sweep * 3;
        let fail = |detail: String| Probe { ok: false, detail };
        let snapshot = status.snapshot();
        match snapshot.last_success.map(|at| at.elapsed()) {
            None => return fail("no sweep has been completed yet".to_owned()),
            Some(age) if age > limit => {
                let error = snapshot.last_error.unwrap_or_default();
                return fail(format!(
                    "due work could not be looked for in {} s: {error}",
                    age.as_secs()
                ));
            }
            Some(_) => {}
        }
        match self.context.store.attempt_overdue(self.lane).await {
            Ok(Some(overdue)) if overdue > limit => {
                fail(format!("a resource has been due for {} s", overdue.as_secs()))
            }
            Ok(_) => Probe { ok: true, detail: "sweeping".to_owned() },
            Err(error) => fail(error.to_string()),
        }
    }

    /// Loads what was claimed; rows that cannot be used are held, each alone.
    async fn load(&self, items: &[Claimed], errors: &mut Vec<String>) -> Vec<ResourceSnapshot> {
        let store = &self.context.store;
        let ids: Vec<_> = items.iter().map(|claimed| claimed.id).collect();
        let loaded = match store.attempt_load(&ids).await {
            Ok(loaded) => loaded,
            // The claims run out by themselves; there is nothing to hold them for.
            Err(error) => {
                errors.push(error.to_string());
                return Vec::new();
            }
        };
        let claims: HashMap<_, _> =
            items.iter().map(|claimed| (claimed.id.as_uuid(), *claimed)).collect();
        let mut snapshots = Vec::with_capacity(loaded.len());
        for row in loaded {
            match row {
                // A row whose claim moved between claim and load is somebody else's.
                Ok(snapshot) => snapshots.extend(Some(snapshot).filter(|snapshot| {
                    claims
                        .get(&snapshot.attempt.id().as_uuid())
                        .is_some_and(|claimed| claimed.claim_token == snapshot.claim_token)
                })),
                Err(CorruptRow { id, reason }) => {
                    tracing::error!(%id, reason, "a row breaks an invariant and is held");
                    errors.push(format!("{id}: {reason}"));
                    if let Some(claimed) = claims.get(&id) {
                        let held = store.attempt_hold(*claimed, &reason, self.pace.sweep).await;
                        errors.extend(held.err().map(|error| error.to_string()));
                    }
                }
            }
        }
        snapshots
    }

    /// Acts and records. What needs no outside action is recorded at once; of
    /// the others, as many at a time as are done by then, so that a slow action
    /// holds back nobody but itself.
    async fn act_and_record(&self, batch: Batch<'_>, planned: Vec<Planned>) -> Vec<String> {
        let (acting, still): (Vec<_>, Vec<_>) = planned.into_iter().partition(Planned::acts);
        let still =
            stream::iter(still).map(|planned| async move { self.act(batch, planned).await });
        let acting =
            stream::iter(acting).map(|planned| async move { self.act(batch, planned).await });
        let Batching { records_per_commit, commits_at_once } = self.batching;
        let records = still
            .buffer_unordered(records_per_commit)
            .ready_chunks(records_per_commit)
            .chain(acting.buffer_unordered(Self::CONCURRENCY).ready_chunks(records_per_commit))
            .map(|acted| async move {
                let (acted, mut ended) = sorted(acted);
                ended.extend(batch.record(acted).await);
                self.end(ended).await
            })
            .buffer_unordered(commits_at_once);
        records.concat().await
    }

    /// One resource's panic is that resource's error.
    async fn act(
        &self,
        batch: Batch<'_>,
        planned: Planned,
    ) -> Result<(Planned, Outcome), (ResourceSnapshot, Ticked)> {
        match AssertUnwindSafe(batch.act(&planned)).catch_unwind().await {
            Ok(outcome) => Ok((planned, outcome)),
            Err(_) => {
                let failed = Ticked::Failed("the action panicked".to_owned());
                Err((planned.snapshot().clone(), failed))
            }
        }
    }

    /// Gives back the claims that no record gave back. Answers the errors.
    async fn end(&self, ended: Vec<(ResourceSnapshot, Ticked)>) -> Vec<String> {
        let (mut releases, mut errors) = (Vec::new(), Vec::new());
        let mut moved = false;
        let give_back = |snapshot: &ResourceSnapshot, recheck| Release {
            attempt: snapshot.attempt.id(),
            claim_token: snapshot.claim_token,
            recheck,
            failures: snapshot.failures,
        };
        for (snapshot, ticked) in ended {
            let id = snapshot.attempt.id();
            match ticked {
                Ticked::Recorded { action, changed_phase } => {
                    tracing::debug!(%id, ?action, changed_phase, "ticked");
                    moved |= changed_phase;
                }
                Ticked::Unchanged(release) => releases.push(release),
                Ticked::Overtaken => releases.push(give_back(&snapshot, Recheck::Now)),
                Ticked::Failed(error) => {
                    tracing::warn!(%id, error, "a tick failed; the resource is tried again");
                    errors.push(format!("{id}: {error}"));
                    releases.push(give_back(&snapshot, Recheck::After(Self::AFTER_FAULT)));
                }
            }
        }
        if moved {
            self.context.wakes.wake();
        }
        if !releases.is_empty()
            && let Err(error) = self.context.store.attempt_release(&releases).await
        {
            errors.push(error.to_string());
        }
        errors
    }
}

/// What is to be recorded, and what ended before.
type Sorted = (Vec<(Planned, Outcome)>, Vec<(ResourceSnapshot, Ticked)>);

fn sorted(acted: Vec<Result<(Planned, Outcome), (ResourceSnapshot, Ticked)>>) -> Sorted {
    let mut sorted: Sorted = (Vec::with_capacity(acted.len()), Vec::new());
    for acted in acted {
        match acted {
            Ok(acted) => sorted.0.push(acted),
            Err(ended) => sorted.1.push(ended),
        }
    }
    sorted
}

#[async_trait]
impl Loop for ResourceLoop {
    type Item = Claimed;

    async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, String> {
        let store = &self.context.store;
        let claimed = store.attempt_claim(&self.worker, self.lane, limit, self.lease).await;
        claimed.map_err(|error| error.to_string())
    }

    async fn work(&self, items: Vec<Claimed>, lease: Lease) -> Vec<String> {
        let mut errors = Vec::new();
        let snapshots = self.load(&items, &mut errors).await;
        let reports = converge::observe(&self.engines, &snapshots).await;
        let batch = Batch {
            context: &self.context,
            engines: &self.engines,
            pace: self.pace,
            actor: &self.actor,
            action_deadline: converge::action_deadline(self.lease),
            lease_allows: &|deadline| lease.allows(deadline),
        };
        let (planned, mut ended) = batch.plan(snapshots.into_iter().zip(reports));
        let (ready, unprepared) = batch.prepare(planned).await;
        ended.extend(unprepared);
        errors.extend(self.end(ended).await);
        errors.extend(self.act_and_record(batch, ready).await);
        errors
    }
}
