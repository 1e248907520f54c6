//! The resource loop: takes provisioned resources one step towards Ready, or
//! out. A row is work once its `due_at` has passed: somebody woke it, it waits
//! for something, or the sweep has come round (a settled row is due again one
//! sweep interval after its last observation). A loop serves one partition, with
//! slots, actions and a status of its own, so that a slow cluster takes nothing
//! from another.
//!
//! This file claims and keeps the claims alive. `slipway_app::usecases::converge`
//! has the order of a tick, `slipway_core` decides it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::permits::Permits;
use slipway_app::ports::broker::Claimed;
pub use slipway_app::usecases::converge::Batching;
use slipway_app::usecases::converge::{Batch, Claims, Engines, action_deadline};
use slipway_core::audit::Actor;
use slipway_core::ids::{Partition, ProvisionedResourceId};
use slipway_core::rules::record::Pace;
use slipway_durable::Lease;
use tokio::sync::{Notify, Semaphore};
use tracing::Instrument;

use crate::claims::{AttemptClaims, AttemptRenewer};
use crate::driver::{Loop, Pacing};
use crate::status::Status;

/// The loop over provisioned resources.
#[derive(Debug)]
pub struct ResourceLoop {
    context: Context,
    engines: Engines,
    worker: String,
    partition: Partition,
    /// The name of the partition, for people.
    cluster: String,
    lease: Duration,
    pace: Pace,
    actor: Actor,
    batching: Batching,
    /// Outside actions that may still be begun now.
    actions: Semaphore,
    wake: Arc<Notify>,
    stopping: AtomicBool,
    permits: Arc<Permits>,
}

#[async_trait]
impl Loop for ResourceLoop {
    type Item = Claimed;

    fn lease(&self) -> Duration {
        self.lease
    }

    /// Actions under way are finished, which their deadline bounds; those that
    /// were not begun are given back, for another process to begin at once.
    fn wind_down(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, String> {
        let store = &self.context.stores.broker;
        let claimed = store.attempt_claim(&self.worker, self.partition, limit, self.lease).await;
        let claimed = claimed.map_err(|error| error.to_string())?;
        self.context.meter.claimed(&self.cluster, claimed.len());
        Ok(claimed)
    }

    async fn work(&self, items: Vec<Claimed>, lease: Lease) -> Vec<String> {
        let store = &self.context.stores;
        // After the claim: whoever changes the mode after this read finds no
        // claim of this batch that does not know it, see `docs/control.md`.
        let mode = match self.permits.read(store).await {
            Ok(known_mode) => known_mode.mode,
            // The claims run out by themselves.
            Err(error) => return vec![error.to_string()],
        };
        let claims = AttemptClaims {
            store,
            worker: &self.worker,
            meter: self.context.meter.as_ref(),
            partition: &self.cluster,
        };
        let renewer = AttemptRenewer::new(claims, &items, lease, self.lease);
        let batch = Batch {
            context: &self.context,
            engines: &self.engines,
            cluster: &self.cluster,
            pace: self.pace,
            batching: self.batching,
            actor: &self.actor,
            action_deadline: action_deadline(self.lease),
            actions: &self.actions,
            permits: &self.permits,
            mode: &mode,
            claims: &RenewedClaims { renewer: &renewer, stopping: &self.stopping },
            wake: &self.wake,
        };
        // Of the level of errors, so that no filter takes the names from a line
        // that it lets through.
        let span = tracing::error_span!("batch", partition = self.cluster, worker = self.worker);
        renewer.during(batch.tick(&items)).instrument(span).await
    }
}

/// The claims of a batch under renewal, of which none starts an action once the
/// process is to stop.
struct RenewedClaims<'a, 'b> {
    renewer: &'a AttemptRenewer<'b>,
    stopping: &'a AtomicBool,
}

impl Claims for RenewedClaims<'_, '_> {
    fn allow(&self, id: ProvisionedResourceId, deadline: Duration) -> bool {
        !self.stopping.load(Ordering::Relaxed) && self.renewer.allows(id, deadline)
    }

    fn ended(&self, ids: &[ProvisionedResourceId]) {
        self.renewer.forget(ids.iter().copied());
    }

    fn age(&self) -> Duration {
        self.renewer.age()
    }
}

impl ResourceLoop {
    pub const NAME: &'static str = "resources";
    /// The probe's published name.
    pub const PROBE: &'static str = "provisioning-broker-reconcile";
    /// How the driver paces this loop. Eight full batches under way keep the
    /// database busy while others wait for an answer or a commit. The poll is what an enrolment at another
    /// replica waits for at most; with a tick after it, it stays under 250 ms.
    pub const PACING: Pacing =
        Pacing { slots: 1_024, batch: 128, poll: Duration::from_millis(200) };
    /// How long a claim lasts if nothing else is configured. What takes longer
    /// is renewed, so this is how long the work of a dead process lies.
    pub const LEASE: Duration = Duration::from_secs(30);
    /// Outside actions of one partition under way at once, however its work came in
    /// batches: a thousand batches of one would otherwise be a thousand actions.
    pub const ACTIONS: usize = 128;

    pub fn new(
        context: Context,
        engines: Engines,
        worker: String,
        partition: Partition,
        lease: Duration,
        sweep: Duration,
    ) -> Self {
        let pace = Pace { deadlines: context.settings.deadlines, sweep, lease };
        let actor = Actor::new(format!("loop:{}", Self::NAME));
        let batching = Batching::default();
        let (actions, wake) = (Semaphore::new(Self::ACTIONS), context.wakes.listen());
        let stopping = AtomicBool::new(false);
        let cluster = engines.cluster(partition).unwrap_or_else(|| partition.to_string());
        context.meter.serving(&cluster);
        Self {
            context,
            engines,
            worker,
            partition,
            cluster,
            lease,
            pace,
            actor,
            batching,
            actions,
            wake,
            stopping,
            permits: Arc::default(),
        }
    }

    /// The same loop with another limit of outside actions; for tests.
    #[must_use]
    pub fn with_actions(self, actions: usize) -> Self {
        Self { actions: Semaphore::new(actions), ..self }
    }

    pub const fn partition(&self) -> Partition {
        self.partition
    }

    /// What tells this loop that something may have become due.
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// The same loop with other batching; for benchmarks and tests.
    #[must_use]
    pub fn with_batching(self, batching: Batching) -> Self {
        Self { batching, ..self }
    }

    /// The same loop with the second proof of absence at another time than one
    /// lease after Deleted; for tests in which no worker can be late.
    #[must_use]
    pub fn with_second_proof_after(self, lease: Duration) -> Self {
        Self { pace: Pace { lease, ..self.pace }, ..self }
    }

    /// The same loop behind a gate that it shares with other loops of this
    /// process, so that they acknowledge a mode together.
    #[must_use]
    pub fn with_permits(self, permits: Arc<Permits>) -> Self {
        Self { permits, ..self }
    }

    /// What this loop asks before it acts.
    pub fn permits(&self) -> Arc<Permits> {
        Arc::clone(&self.permits)
    }

    /// Takes back what an earlier life of this worker held, in whatever partition,
    /// and makes everything that is not settled for good due now. Before any
    /// partition of this process is driven: it would take back from that one too.
    pub async fn boot_sweep(&self) -> Result<u64, slipway_app::ports::store::Error> {
        let reclaimed = self.context.stores.broker.attempt_reclaim(&self.worker).await?;
        self.context.meter.reclaimed(&self.cluster, reclaimed);
        self.late_sweep().await
    }

    /// The boot sweep of a partition that comes when others are driven already.
    pub async fn late_sweep(&self) -> Result<u64, slipway_app::ports::store::Error> {
        self.context.stores.broker.attempt_wake_all(self.partition).await
    }

    /// Fails when due work could not be looked for, or was left lying, for
    /// longer than three sweep intervals.
    pub async fn probe(&self, status: &Status) -> Probe {
        let limit = self.pace.sweep * 3;
        // Shown to callers without a key, so these texts say what is wrong and
        // nothing of ours; the rest is in the log and in the loop's status.
        let fail = |detail: &str, internal: String| {
            tracing::warn!(internal, "the resource loop is not ready: {detail}");
            Probe { ok: false, detail: detail.to_owned() }
        };
        let snapshot = status.snapshot();
        match snapshot.last_success.map(|at| at.elapsed()) {
            None => return fail("no sweep has been completed yet", String::new()),
            Some(age) if age > limit => {
                let error = snapshot.last_error.unwrap_or_default();
                let internal = format!("for {} s; the last error: {error}", age.as_secs());
                return fail("due work cannot be looked for", internal);
            }
            Some(_) => {}
        }
        match self.context.stores.broker.attempt_overdue(self.partition).await {
            Ok(Some(overdue)) if overdue > limit => {
                fail("due work is left lying", format!("for {} s", overdue.as_secs()))
            }
            Ok(_) => Probe { ok: true, detail: "sweeping".to_owned() },
            Err(error) => fail("the database does not answer", error.to_string()),
        }
    }
}

/// Whether the loop keeps up, for `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub ok: bool,
    pub detail: String,
}
