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
use slipway_app::usecases::converge::{self, Engines, Step, Ticked};
use slipway_core::audit::Actor;
use slipway_core::commit::{Recheck, Release};
use slipway_core::observation::CompositeReport;
use slipway_core::rules::record::Pace;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_durable::Lease;

use crate::driver::Loop;
use crate::status::Status;

/// The loop over provisioned resources.
#[derive(Debug)]
pub struct ResourceLoop {
    context: Context,
    engines: Engines,
    worker: String,
    lease: Duration,
    pace: Pace,
    actor: Actor,
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
    /// Objects of one batch that are acted on at once.
    const CONCURRENCY: usize = 16;
    /// How soon a tick that failed inside us is tried again.
    const AFTER_FAULT: Duration = Duration::from_secs(1);

    pub fn new(
        context: Context,
        engines: Engines,
        worker: String,
        lease: Duration,
        sweep: Duration,
    ) -> Self {
        let pace = Pace { deadlines: context.settings.deadlines, sweep };
        let actor = Actor::new(format!("loop:{}", Self::NAME));
        Self { context, engines, worker, lease, pace, actor }
    }

    /// Takes back what an earlier life of this worker held, and makes
    /// everything that is not settled for good due now.
    pub async fn boot_sweep(&self) -> Result<u64, slipway_app::ports::store::Error> {
        self.context.store.attempt_reclaim(&self.worker).await?;
        self.context.store.attempt_wake_all().await
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
        match self.context.store.attempt_overdue().await {
            Ok(Some(overdue)) if overdue > limit => {
                fail(format!("a resource has been due for {} s", overdue.as_secs()))
            }
            Ok(_) => Probe { ok: true, detail: "sweeping".to_owned() },
            Err(error) => fail(error.to_string()),
        }
    }

    async fn tick(
        &self,
        snapshot: &ResourceSnapshot,
        report: &CompositeReport,
        lease: Lease,
    ) -> Result<Ticked, String> {
        let step = Step {
            context: &self.context,
            engines: &self.engines,
            snapshot,
            report,
            pace: self.pace,
            actor: &self.actor,
            lease_allows: &|deadline| lease.allows(deadline),
        };
        // One resource's panic is that resource's error.
        match AssertUnwindSafe(step.take()).catch_unwind().await {
            Ok(ticked) => ticked.map_err(|error| error.to_string()),
            Err(_) => Err("the tick panicked".to_owned()),
        }
    }
}

#[async_trait]
impl Loop for ResourceLoop {
    type Item = Claimed;

    async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, String> {
        let claimed = self.context.store.attempt_claim(&self.worker, limit, self.lease).await;
        claimed.map_err(|error| error.to_string())
    }

    async fn work(&self, items: Vec<Claimed>, lease: Lease) -> Vec<String> {
        let ids: Vec<_> = items.iter().map(|claimed| claimed.id).collect();
        let loaded = match self.context.store.attempt_load(&ids).await {
            Ok(loaded) => loaded,
            // The claims run out by themselves; there is nothing to hold them for.
            Err(error) => return vec![error.to_string()],
        };
        let claims: HashMap<_, _> =
            items.iter().map(|claimed| (claimed.id.as_uuid(), *claimed)).collect();
        let mut errors = Vec::new();
        let mut snapshots = Vec::with_capacity(loaded.len());
        for row in loaded {
            match row {
                Ok(snapshot) => snapshots.push(snapshot),
                Err(CorruptRow { id, reason }) => {
                    tracing::error!(%id, reason, "a row breaks an invariant and is held");
                    errors.push(format!("{id}: {reason}"));
                    if let Some(claimed) = claims.get(&id) {
                        let held = self
                            .context
                            .store
                            .attempt_hold(*claimed, &reason, self.pace.sweep)
                            .await;
                        errors.extend(held.err().map(|error| error.to_string()));
                    }
                }
            }
        }
        // A row whose claim moved between claim and load is somebody else's.
        snapshots.retain(|snapshot| {
            claims
                .get(&snapshot.attempt.id().as_uuid())
                .is_some_and(|c| c.claim_token == snapshot.claim_token)
        });

        let reports = converge::observe(&self.engines, &snapshots).await;
        let ticked: Vec<_> = stream::iter(snapshots.into_iter().zip(reports))
            .map(|(snapshot, report)| async move {
                let result = self.tick(&snapshot, &report, lease).await;
                (snapshot, result)
            })
            .buffer_unordered(Self::CONCURRENCY)
            .collect()
            .await;

        let mut releases = Vec::new();
        let give_back = |snapshot: &ResourceSnapshot, recheck| Release {
            attempt: snapshot.attempt.id(),
            claim_token: snapshot.claim_token,
            recheck,
            failures: snapshot.failures,
        };
        for (snapshot, result) in ticked {
            let id = snapshot.attempt.id();
            match result {
                Ok(Ticked::Recorded { action, changed_phase }) => {
                    tracing::debug!(%id, ?action, changed_phase, "ticked");
                    if changed_phase {
                        self.context.wakes.wake();
                    }
                }
                Ok(Ticked::Unchanged(release)) => releases.push(release),
                Ok(Ticked::Overtaken) => releases.push(give_back(&snapshot, Recheck::Now)),
                Err(error) => {
                    tracing::warn!(%id, error, "a tick failed; the resource is tried again");
                    errors.push(format!("{id}: {error}"));
                    releases.push(give_back(&snapshot, Recheck::After(Self::AFTER_FAULT)));
                }
            }
        }
        if !releases.is_empty()
            && let Err(error) = self.context.store.attempt_release(&releases).await
        {
            errors.push(error.to_string());
        }
        errors
    }
}
