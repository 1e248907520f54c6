//! The resource loop: advances provisioned resources one step towards Ready, or
//! towards Deleted. A row is work once its `due_at` has passed: somebody woke
//! it, its waiting time is over, or the sweep has come (a settled row is due
//! again one sweep interval after its last observation). Each loop serves one
//! partition, with its own slots, actions and status, so that a slow cluster
//! takes nothing from another.
//!
//! This file claims rows and renews the claims.
//! `slipway_app::broker::converge` implements the order of a tick,
//! `slipway_core` decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::Context;
pub use slipway_app::broker::converge::Batching;
use slipway_app::broker::converge::{Batch, Claims, Engines, action_deadline};
use slipway_app::broker::port::Claimed;
use slipway_app::permits::Permits;
use slipway_core::access::audit::Actor;
use slipway_core::broker::record::Pace;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{Partition, ProvisionedResourceId};
use slipway_durable::{Actions, EarlierClaims, Lease};
use tokio::sync::{Notify, Semaphore};
use tracing::Instrument;

use crate::claims::{AttemptClaims, AttemptRenewer};
use crate::driver::{Failure, Loop, Pacing, failure};
use crate::readiness::{Progress, Verdict};
use crate::status::Status;

/// The loop over provisioned resources.
#[derive(Debug)]
pub struct ResourceLoop {
    context: Context,
    engines: Engines,
    worker: String,
    partition: Partition,
    /// The name of the partition's cluster, for display.
    cluster: String,
    lease: Duration,
    pace: Pace,
    actor: Actor,
    batching: Batching,
    /// Limits the concurrent outside actions.
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

    /// Running actions finish, within their deadline. Claims whose action has
    /// not started are released, so that another process can act at once.
    fn wind_down(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, Failure> {
        let store = &self.context.stores.broker;
        let claimed = store.attempt_claim(&self.worker, self.partition, limit, self.lease).await;
        let claimed = claimed.map_err(failure)?;
        self.context.meter.claimed(&self.cluster, claimed.len());
        Ok(claimed)
    }

    async fn work(&self, items: Vec<Claimed>, lease: Lease) -> Vec<String> {
        let store = &self.context.stores;
        // Read after the claim: a later change of the mode wakes rows that are
        // already claimed, so they tick again under it, see `docs/control.md`.
        let mode = match self.permits.read(store).await {
            Ok(known_mode) => known_mode.mode,
            // The claims expire by themselves.
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
        // At error level, so that no filter removes the span's fields from a
        // line that it lets through.
        let span = tracing::error_span!("batch", partition = self.cluster, worker = self.worker);
        renewer.during(batch.tick(&items)).instrument(span).await
    }
}

/// The renewed claims of a batch; none starts an action once the process is stopping.
struct RenewedClaims<'a, 'b> {
    renewer: &'a AttemptRenewer<'b>,
    stopping: &'a AtomicBool,
}

impl Claims for RenewedClaims<'_, '_> {
    fn allow(&self, id: ProvisionedResourceId, deadline: Duration) -> bool {
        !self.stopping.load(Ordering::Relaxed) && self.renewer.allows(&id, deadline)
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
    /// How the driver paces this loop. Eight full batches in flight keep the
    /// database busy while some wait for an answer or a commit. The poll is the
    /// longest that an enrolment at another replica waits; with a tick after
    /// it, that stays under 250 ms.
    pub const PACING: Pacing =
        Pacing { slots: 1_024, batch: 128, poll: Duration::from_millis(200) };
    /// The default length of a claim. Longer work is renewed, so this is how
    /// long the work of a dead process waits.
    pub const LEASE: Duration = Duration::from_secs(30);
    /// Concurrent outside actions of one partition, however its work is split
    /// into batches: a thousand batches of one would otherwise run a thousand
    /// actions.
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

    /// The notification that something may be due for this loop.
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// The same loop with other batching; for benchmarks and tests.
    #[must_use]
    pub fn with_batching(self, batching: Batching) -> Self {
        Self { batching, ..self }
    }

    /// The same loop with another delay of the deletion verification than one
    /// lease after Deleted; for tests in which no worker can be late.
    #[must_use]
    pub fn with_second_proof_after(self, lease: Duration) -> Self {
        Self { pace: Pace { lease, ..self.pace }, ..self }
    }

    /// The same loop with permits that it shares with other loops of this
    /// process, so that they acknowledge a mode together.
    #[must_use]
    pub fn with_permits(self, permits: Arc<Permits>) -> Self {
        Self { permits, ..self }
    }

    /// The permits that this loop requests before it acts.
    pub fn permits(&self) -> Arc<Permits> {
        Arc::clone(&self.permits)
    }

    /// Makes every row of this partition due that is not settled for good. A row
    /// that an earlier process of this worker has claimed is due at once, or when
    /// its lease has ended, see [`actions_of`]. Must run before this partition is
    /// driven: it would end claims of this process too.
    pub async fn boot_sweep(&self) -> Result<u64, slipway_app::ports::store::Error> {
        let store = &self.context.stores.broker;
        if self.earlier_claims() == EarlierClaims::TakenBack {
            let reclaimed = store.attempt_reclaim(&self.worker, self.partition).await?;
            self.context.meter.reclaimed(&self.cluster, reclaimed);
        }
        store.attempt_wake_all(self.partition).await
    }

    /// One remote engine, or none that is known, is enough for the claims to lapse.
    fn earlier_claims(&self) -> EarlierClaims {
        let served = self.engines.iter().into_iter().filter(|(of, _)| *of == self.partition);
        let actions: Vec<_> = served.map(|(_, engine)| actions_of(engine.engine())).collect();
        let local = !actions.is_empty() && !actions.contains(&Actions::Remote);
        if local { Actions::InProcess } else { Actions::Remote }.earlier_claims()
    }

    /// How the loop does, and for the log why it fails: what callers without a key
    /// must not see.
    pub async fn verdict(&self, status: &Status) -> (Verdict, String) {
        let overdue = match self.context.stores.broker.attempt_overdue(self.partition).await {
            Ok(overdue) => overdue,
            Err(error) => return (Verdict::CannotList, error.to_string()),
        };
        let snapshot = status.snapshot();
        let progress = Progress {
            started: snapshot.started.elapsed(),
            answered: snapshot.last_success.map(|at| at.elapsed()),
            worked: snapshot.last_claim.map(|at| at.elapsed()),
            overdue,
        };
        let error = snapshot.last_error.unwrap_or_else(|| "none".to_owned());
        (Verdict::of(progress, self.pace.sweep * 3), format!("{progress:?}, last error: {error}"))
    }
}

/// Who carries out the actions of an engine.
///
/// The local engine acts by system calls on threads of this process. Nothing of it is
/// left to happen when the process is dead, and the next process of this worker
/// begins only then:
///
/// - Whoever has the lock of the worker's name knows that the process before is over.
///   The kernel closes the file of that lock after the last thread has ended, and a
///   thread ends after its system call. A child between fork and exec has a copy of
///   the file, so an agent that was being started runs its program by then. It becomes
///   the agent only with the lock of its node directory, which a delete takes first.
/// - A directory that was half made has a name of its own, and the engine removes it
///   when it opens the root. What was not synced may be lost with the machine; the
///   next observation shows that.
/// - Two control planes on one root have a name each, and take back only their own
///   claims. Their applies and deletes meet at the lock of the node directory.
///
/// A request to any other engine goes on without us.
fn actions_of(engine: Engine) -> Actions {
    if engine.acts_by_request() { Actions::Remote } else { Actions::InProcess }
}
