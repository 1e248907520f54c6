//! The resource loop: takes provisioned resources one step towards Ready, or
//! out. What counts as work is a row whose `due_at` has passed: it was woken,
//! it waits for something, or it is its turn in the sweep (a settled row is
//! due again one sweep interval after it was last looked at). A loop serves
//! one lane, with slots, actions and a status of its own, so that a slow
//! cluster takes nothing from another. What the steps
//! are is decided in `slipway_core`, what is done in
//! `slipway_app::usecases::converge`.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt, stream};
use slipway_app::Context;
use slipway_app::gate::Gate;
use slipway_app::ports::broker::Claimed;
use slipway_app::ports::meter::TickOutcome;
use slipway_app::ports::store::CorruptRow;
use slipway_app::usecases::converge::{self, Batch, Engines, Fault, Planned, Ticked};
use slipway_core::audit::Actor;
use slipway_core::commit::{Recheck, Release};
use slipway_core::ids::Lane;
use slipway_core::rules::record::{Outcome, Pace};
use slipway_core::snapshot::ResourceSnapshot;
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
    lane: Lane,
    /// The name of the lane, for people.
    cluster: String,
    lease: Duration,
    pace: Pace,
    actor: Actor,
    batching: Batching,
    /// Outside actions that may still be begun now.
    actions: Semaphore,
    wake: Arc<Notify>,
    stopping: AtomicBool,
    gate: Arc<Gate>,
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
    /// How the driver paces this loop. Eight full batches under way keep the
    /// database busy while others wait for an answer or a commit. The poll is what an enrolment at another
    /// replica waits for at most; with a tick after it, it stays under 250 ms.
    pub const PACING: Pacing =
        Pacing { slots: 1_024, batch: 128, poll: Duration::from_millis(200) };
    /// How long a claim lasts if nothing else is configured. What takes longer
    /// is renewed, so this is how long the work of a dead process lies.
    pub const LEASE: Duration = Duration::from_secs(30);
    /// Outside actions of one lane under way at once, however its work came in
    /// batches: a thousand batches of one would otherwise be a thousand actions.
    pub const ACTIONS: usize = 128;

    pub fn new(
        context: Context,
        engines: Engines,
        worker: String,
        lane: Lane,
        lease: Duration,
        sweep: Duration,
    ) -> Self {
        let pace = Pace { deadlines: context.settings.deadlines, sweep, lease };
        let actor = Actor::new(format!("loop:{}", Self::NAME));
        let batching = Batching::default();
        let (actions, wake) = (Semaphore::new(Self::ACTIONS), context.wakes.listen());
        let stopping = AtomicBool::new(false);
        let cluster = engines.cluster(lane).unwrap_or_else(|| lane.to_string());
        context.meter.serving(&cluster);
        Self {
            context,
            engines,
            worker,
            lane,
            cluster,
            lease,
            pace,
            actor,
            batching,
            actions,
            wake,
            stopping,
            gate: Arc::default(),
        }
    }

    /// The same loop with another limit of outside actions; for tests.
    #[must_use]
    pub fn with_actions(self, actions: usize) -> Self {
        Self { actions: Semaphore::new(actions), ..self }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub const fn lane(&self) -> Lane {
        self.lane
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
    pub fn with_gate(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }

    /// What this loop asks before it acts.
    pub fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Takes back what an earlier life of this worker held, in whatever lane,
    /// and makes everything that is not settled for good due now. Before any
    /// lane of this process is driven: it would take back from that one too.
    pub async fn boot_sweep(&self) -> Result<u64, slipway_app::ports::store::Error> {
        let reclaimed = self.context.stores.broker.attempt_reclaim(&self.worker).await?;
        self.context.meter.reclaimed(&self.cluster, reclaimed);
        self.late_sweep().await
    }

    /// The boot sweep of a lane that comes when others are driven already.
    pub async fn late_sweep(&self) -> Result<u64, slipway_app::ports::store::Error> {
        self.context.stores.broker.attempt_wake_all(self.lane).await
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
        match self.context.stores.broker.attempt_overdue(self.lane).await {
            Ok(Some(overdue)) if overdue > limit => {
                fail("due work is left lying", format!("for {} s", overdue.as_secs()))
            }
            Ok(_) => Probe { ok: true, detail: "sweeping".to_owned() },
            Err(error) => fail("the database does not answer", error.to_string()),
        }
    }

    /// Loads what was claimed; rows that cannot be used are held, each alone.
    async fn load(
        &self,
        batch: Batch<'_>,
        items: &[Claimed],
        errors: &mut Vec<String>,
    ) -> Vec<ResourceSnapshot> {
        let store = &self.context.stores;
        let ids: Vec<_> = items.iter().map(|claimed| claimed.id).collect();
        let loaded = match store.broker.attempt_load(&ids).await {
            Ok(loaded) => loaded,
            Err(error) => {
                let message = error.to_string();
                let fault = |claimed: &Claimed| Fault {
                    claimed: *claimed,
                    failures: 0,
                    message: message.clone(),
                };
                let faults: Vec<_> = items.iter().map(fault).collect();
                errors.push(message.clone());
                errors.extend(self.give_up(batch, faults).await);
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
                Err(CorruptRow { id, reason, .. }) => {
                    // Of what resource it is cannot be read, either.
                    let attempt_id = id;
                    tracing::error!(%attempt_id, reason, "a row breaks an invariant and is held");
                    errors.push(format!("{id}: {reason}"));
                    if let Some(claimed) = claims.get(&id) {
                        let held =
                            store.broker.attempt_hold(*claimed, &reason, self.pace.sweep).await;
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
    async fn act_and_record(
        &self,
        batch: Batch<'_>,
        renewer: &AttemptRenewer<'_>,
        planned: Vec<Planned>,
    ) -> Vec<String> {
        let (acting, still): (Vec<_>, Vec<_>) = planned.into_iter().partition(Planned::acts);
        let still =
            stream::iter(still).map(|planned| async move { self.act(batch, planned).await });
        let acting =
            stream::iter(acting).map(|planned| async move { self.act(batch, planned).await });
        let Batching { records_per_commit, commits_at_once } = self.batching;
        let records = still
            .buffer_unordered(records_per_commit)
            .ready_chunks(records_per_commit)
            .chain(acting.buffer_unordered(Self::ACTIONS).ready_chunks(records_per_commit))
            .map(|acted| async move {
                let (acted, mut ended) = sorted(acted);
                ended.extend(batch.record(acted).await);
                self.end(batch, renewer, ended).await
            })
            .buffer_unordered(commits_at_once);
        records.concat().await
    }

    /// One resource's panic is that resource's error. Waits for its turn among
    /// the actions of the lane; the lease is asked after that, and is renewed
    /// meanwhile.
    async fn act(
        &self,
        batch: Batch<'_>,
        mut planned: Planned,
    ) -> Result<(Planned, Outcome), (ResourceSnapshot, Ticked)> {
        let _turn = match planned.acts() {
            // It is closed by nobody; if it were, the lease still stands guard.
            true => self.actions.acquire().await.ok(),
            false => None,
        };
        let span = tick_span(planned.snapshot());
        let acted = AssertUnwindSafe(batch.act(&mut planned)).catch_unwind();
        match acted.instrument(span).await {
            Ok(Some(outcome)) => Ok((planned, outcome)),
            Ok(None) => Err((planned.snapshot().clone(), Ticked::Expiring)),
            Err(_) => {
                let failed = Ticked::Failed("the action panicked".to_owned());
                Err((planned.snapshot().clone(), failed))
            }
        }
    }

    /// Gives back the claims that no record gave back. Answers the errors.
    async fn end(
        &self,
        batch: Batch<'_>,
        renewer: &AttemptRenewer<'_>,
        ended: Vec<(ResourceSnapshot, Ticked)>,
    ) -> Vec<String> {
        let (mut releases, mut faults, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let mut moved = false;
        let again = |snapshot: &ResourceSnapshot| Release {
            attempt: snapshot.attempt.id(),
            claim_token: snapshot.claim_token,
            recheck: Recheck::Now,
            failures: snapshot.failures,
        };
        renewer.forget(ended.iter().map(|(snapshot, _)| snapshot.attempt.id()));
        for (snapshot, ticked) in ended {
            let id = snapshot.attempt.id();
            let _span = tick_span(&snapshot).entered();
            self.context.meter.ticked(&self.cluster, outcome_of(&ticked), renewer.age());
            match ticked {
                Ticked::Recorded { action, changed_phase } => {
                    tracing::debug!(?action, changed_phase, "ticked");
                    moved |= changed_phase;
                }
                Ticked::Unchanged(release) => releases.push(release),
                Ticked::Overtaken => {
                    tracing::debug!("another worker or writer was faster; nothing is written");
                    releases.push(again(&snapshot));
                }
                Ticked::Expiring => {
                    tracing::debug!("the claim is about to end; the next tick acts");
                    releases.push(again(&snapshot));
                }
                Ticked::Failed(message) => {
                    tracing::warn!(error = message, "a tick failed; the resource is tried again");
                    errors.push(format!("{id}: {message}"));
                    let claimed = Claimed { id, claim_token: snapshot.claim_token };
                    faults.push(Fault { claimed, failures: snapshot.failures, message });
                }
            }
        }
        if moved {
            self.wake.notify_one();
            self.context.wakes.outbox.notify_one();
        }
        errors.extend(self.release(&releases).await);
        errors.extend(self.give_up(batch, faults).await);
        errors
    }

    /// Shows the faults on their resources; where that cannot be written, at
    /// least the claim is given back. If not even that works, it runs out.
    async fn give_up(&self, batch: Batch<'_>, faults: Vec<Fault>) -> Vec<String> {
        let unwritten = batch.fault(&faults).await;
        let (releases, errors): (Vec<_>, Vec<_>) = unwritten.into_iter().unzip();
        let mut errors: Vec<_> = errors.into_iter().map(|error| error.to_string()).collect();
        errors.dedup();
        errors.extend(self.release(&releases).await);
        errors
    }

    async fn release(&self, releases: &[Release]) -> Option<String> {
        if releases.is_empty() {
            return None;
        }
        self.context
            .stores
            .broker
            .attempt_release(releases)
            .await
            .err()
            .map(|error| error.to_string())
    }

    /// The whole of a batch, from what was claimed to what was given back.
    async fn tick(
        &self,
        batch: Batch<'_>,
        renewer: &AttemptRenewer<'_>,
        items: &[Claimed],
    ) -> Vec<String> {
        let mut errors = Vec::new();
        let snapshots = self.load(batch, items, &mut errors).await;
        let loaded: HashSet<_> = snapshots.iter().map(|snapshot| snapshot.attempt.id()).collect();
        renewer.forget(items.iter().map(|item| item.id).filter(|id| !loaded.contains(id)));
        let reports = converge::observe(&self.engines, &snapshots, batch.action_deadline).await;
        let (planned, mut ended) = batch.plan(snapshots.into_iter().zip(reports));
        let (ready, unprepared) = batch.prepare(planned).await;
        ended.extend(unprepared);
        errors.extend(self.end(batch, renewer, ended).await);
        errors.extend(self.act_and_record(batch, renewer, ready).await);
        errors
    }
}

/// Every line about a tick names what it is about.
fn tick_span(snapshot: &ResourceSnapshot) -> tracing::Span {
    tracing::error_span!(
        "tick",
        resource_id = %snapshot.resource.id,
        attempt_id = %snapshot.attempt.id(),
    )
}

const fn outcome_of(ticked: &Ticked) -> TickOutcome {
    match ticked {
        Ticked::Recorded { .. } => TickOutcome::Recorded,
        Ticked::Unchanged(_) => TickOutcome::Unchanged,
        Ticked::Overtaken => TickOutcome::Overtaken,
        Ticked::Expiring => TickOutcome::Expiring,
        Ticked::Failed(_) => TickOutcome::Failed,
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

    fn lease(&self) -> Duration {
        self.lease
    }

    /// Actions under way are finished, which their deadline bounds; those that
    /// were not begun are given back, for another process to begin at once.
    fn wind_down(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, String> {
        let store = &self.context.stores;
        let claimed = store.broker.attempt_claim(&self.worker, self.lane, limit, self.lease).await;
        let claimed = claimed.map_err(|error| error.to_string())?;
        self.context.meter.claimed(&self.cluster, claimed.len());
        Ok(claimed)
    }

    async fn work(&self, items: Vec<Claimed>, lease: Lease) -> Vec<String> {
        let store = &self.context.stores;
        // After the claim: whoever changes the mode after this read finds no
        // claim of this batch that does not know it, see `docs/control.md`.
        let mode = match self.gate.read(store).await {
            Ok(stance) => stance.mode,
            // The claims run out by themselves.
            Err(error) => return vec![error.to_string()],
        };
        let claims = AttemptClaims {
            store,
            worker: &self.worker,
            meter: self.context.meter.as_ref(),
            lane: &self.cluster,
        };
        let renewer = AttemptRenewer::new(claims, &items, lease, self.lease);
        let batch = Batch {
            context: &self.context,
            engines: &self.engines,
            pace: self.pace,
            actor: &self.actor,
            gate: &self.gate,
            mode: &mode,
            action_deadline: converge::action_deadline(self.lease),
            lease_allows: &|id, deadline| !self.is_stopping() && renewer.allows(id, deadline),
        };
        // Of the level of errors, so that no filter takes the names from a line
        // that it lets through.
        let span = tracing::error_span!("batch", lane = self.cluster, worker = self.worker);
        renewer.during(self.tick(batch, &renewer, &items)).instrument(span).await
    }
}
