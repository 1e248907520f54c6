//! The tick: takes claimed resources, carries out outside actions, and writes
//! records.
//!
//! [`Batch::tick`] shows the whole order, which matters: load, observe, decide,
//! record the intent, act, record the outcome, release the claim. A crash
//! between any two steps leaves a state that the next tick recognises.
//! `slipway_core::broker` decides (`decide`) and computes what is written
//! (`prepare`, `record`); the loop in `controller` claims.
//!
//! Resources of a batch share transactions and nothing else: an error, a
//! refusal or a panic of one does not affect the others.

mod act;
mod blockers;
mod engines;
mod write;

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use slipway_core::access::audit::Actor;
use slipway_core::broker::decide::{Decision, Effect, Facts, Outcome, decide};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::phase::Action;
use slipway_core::broker::record::Pace;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::Release;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::operations::control::Mode;
use tokio::sync::{Notify, Semaphore};

use self::act::Minted;
pub(crate) use self::engines::address;
pub use self::engines::{Engines, observe};
use crate::Context;
use crate::broker::port::Claimed;
use crate::permits::Permits;
use crate::ports::meter::TickOutcome;
use crate::ports::store::{self, CorruptRow};

/// How long one outside action, or one observation, may take under a lease of
/// this length. An action starts only with more lease left than this, and is
/// abandoned after it. Its claim then lapses, actions are idempotent, and the next
/// observation shows the result. A third of the lease, because loading and
/// observing before the action and recording after it each get as much again.
pub fn action_deadline(lease: Duration) -> Duration {
    lease / 3
}

/// How records share transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// Records in one transaction, at most. A batch in one transaction
    /// amortises the commit best.
    pub records_per_commit: usize,
    /// Concurrent transactions of one batch. Two, so that actions that finish
    /// during a commit need not wait for it.
    pub commits_at_once: usize,
}

impl Default for Batching {
    fn default() -> Self {
        Self { records_per_commit: 256, commits_at_once: 2 }
    }
}

/// The claims of a batch, as their lease renewer knows them. It measures the
/// remaining lease with the process's own clock.
pub trait Claims: Send + Sync {
    /// Whether an action with this deadline may start on this row.
    fn allow(&self, id: ProvisionedResourceId, deadline: Duration) -> bool;

    /// These claims were released or lost; the renewer stops renewing them.
    fn ended(&self, ids: &[ProvisionedResourceId]);

    /// How long ago work on the batch began.
    fn age(&self) -> Duration;
}

/// What all ticks of a batch have in common.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub context: &'a Context,
    pub engines: &'a Engines,
    /// The name of the batch's cluster.
    pub cluster: &'a str,
    pub pace: Pace,
    pub batching: Batching,
    pub actor: &'a Actor,
    /// How long one outside action may take, see [`action_deadline`].
    pub action_deadline: Duration,
    /// Limits the concurrent outside actions on the cluster.
    pub actions: &'a Semaphore,
    /// Grants or refuses each outside action and each registry write, right
    /// before it starts.
    pub permits: &'a Arc<Permits>,
    /// The mode as it was when the batch was claimed.
    pub mode: &'a Mode,
    pub claims: &'a dyn Claims,
    /// Notified when a phase changed, so that the loop claims the next step at once.
    pub wake: &'a Notify,
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("pace", &self.pace).finish_non_exhaustive()
    }
}

/// One resource in one tick.
#[derive(Debug)]
struct Item {
    snapshot: ResourceSnapshot,
    report: CompositeReport,
    facts: Facts,
    decision: Decision,
    /// The token for the apply, if the decision mints one.
    minted: Option<Minted>,
    /// Set after the snapshot was read, see `bring_to_now`.
    read_at: Instant,
}

/// How a tick ended.
#[derive(Debug)]
enum Ticked {
    /// Recorded; the same transaction released the claim.
    Recorded { action: Action, changed_phase: bool },
    /// Nothing to record; the claim is released together with others of the batch.
    Unchanged(Release),
    /// Another worker or writer was faster; nothing was written here.
    Overtaken,
    /// The lease is about to end; no action started, and the next tick acts.
    Expiring,
    /// The action was not answered, and that could not be recorded, because
    /// another writer was faster or for an error of our own. The claim lapses.
    Unanswered(Option<String>),
    /// An error of our own, with its message.
    /// `is_logged` if the store logs the cause itself.
    Failed { message: String, is_logged: bool },
}

type Ended = (ResourceSnapshot, Ticked);

/// An outcome to be recorded, or a tick that ended before.
type Acted = Result<(Item, Outcome), Ended>;

impl Batch<'_> {
    /// Runs one tick of each claimed resource, from the claim to its end.
    /// Returns the errors; each is also shown on its resource if it can be
    /// written.
    ///
    /// One transaction records all intents of a batch. Ticks without an outside
    /// action are recorded at once; the others in groups, as they finish, so
    /// that a slow action delays only itself.
    pub async fn tick(&self, claims: &[Claimed]) -> Vec<String> {
        let (snapshots, mut errors) = self.load(claims).await;
        let reports = observe(self.engines, &snapshots, self.action_deadline).await;
        let (decided, mut ended) = self.decide(snapshots, reports);
        let (ready, not_begun) = self.record_intents(decided).await;
        ended.extend(not_begun);
        errors.extend(self.give_back(ended).await);

        let (at_once, Batching { records_per_commit, commits_at_once }) =
            (ready.len().max(1), self.batching);
        let records = stream::iter(ready)
            .map(|item| async move { self.act(item).await })
            .buffer_unordered(at_once)
            .ready_chunks(records_per_commit)
            .map(|acted| async move { self.give_back(self.record_outcomes(acted).await).await })
            .buffer_unordered(commits_at_once);
        errors.extend(records.concat().await);
        self.context.wakes.ticked.notify_one();
        self.context.wakes.servers.notify_one();
        self.context.wakes.teardowns.notify_one();
        errors
    }

    /// Loads the claimed rows. A row that cannot be read gets a blocker; no
    /// other row is affected.
    async fn load(&self, claims: &[Claimed]) -> (Vec<ResourceSnapshot>, Vec<String>) {
        let store = &self.context.stores.broker;
        let ids: Vec<_> = claims.iter().map(|claimed| claimed.id).collect();
        let loaded = match store.attempt_load(&ids).await {
            Ok(loaded) => loaded,
            Err(error) => {
                let message = error.to_string();
                let faults = claims.iter().map(|claimed| (*claimed, 0, message.clone())).collect();
                let mut errors = vec![message.clone()];
                errors.extend(self.record_faults(faults).await);
                self.claims.ended(&ids);
                return (Vec::new(), errors);
            }
        };
        let mut open: HashMap<_, _> =
            claims.iter().map(|claimed| (claimed.id.as_uuid(), *claimed)).collect();
        let (mut snapshots, mut errors) = (Vec::with_capacity(loaded.len()), Vec::new());
        for row in loaded {
            match row {
                Ok(snapshot) => {
                    let id = snapshot.attempt.id().as_uuid();
                    // If the claim token changed between claim and load,
                    // another worker has the row.
                    let ours = |claimed: &Claimed| claimed.claim_token == snapshot.claim_token;
                    if open.get(&id).is_some_and(ours) {
                        open.remove(&id);
                        snapshots.push(snapshot);
                    }
                }
                Err(CorruptRow { id, reason, seam, .. }) => {
                    // A corrupt row does not even name its resource.
                    let attempt_id = id;
                    tracing::error!(%attempt_id, reason, "a row breaks an invariant and is quarantined");
                    errors.push(format!("{id}: {reason}"));
                    if let Some(claimed) = open.get(&id) {
                        let (claimed, sweep) = (*claimed, self.pace.sweep);
                        let written = store.attempt_quarantine(claimed, &reason, seam, sweep).await;
                        errors.extend(written.err().map(|error| error.to_string()));
                    }
                }
            }
        }
        let lost: Vec<_> = open.values().map(|claimed| claimed.id).collect();
        self.claims.ended(&lost);
        (snapshots, errors)
    }

    /// Decides about each, and draws the tokens that a decision mints.
    fn decide(
        &self,
        snapshots: Vec<ResourceSnapshot>,
        reports: Vec<CompositeReport>,
    ) -> (Vec<Item>, Vec<Ended>) {
        let (mut decided, mut ended) = (Vec::with_capacity(snapshots.len()), Vec::new());
        for (snapshot, report) in snapshots.into_iter().zip(reports) {
            let decision = isolated(|| {
                let facts = self.facts(&snapshot);
                let decision = decide(&snapshot, &report, &facts, self.mode, snapshot.now);
                let minted = self.mint(&snapshot, &decision);
                (facts, decision, minted)
            });
            match decision {
                Ok((facts, decision, minted)) => {
                    if decision.wakes_placement {
                        self.context.wakes.wake_placement();
                    }
                    let read_at = Instant::now();
                    decided.push(Item { snapshot, report, facts, decision, minted, read_at });
                }
                Err(panicked) => ended.push((snapshot, Ticked::failed(panicked))),
            }
        }
        (decided, ended)
    }

    fn may_act(&self, snapshot: &ResourceSnapshot) -> bool {
        self.claims.allow(snapshot.attempt.id(), self.action_deadline)
    }
}

impl Item {
    /// Whether the decision includes an outside action, which may be slow.
    fn acts(&self) -> bool {
        !matches!(self.decision.effect, Effect::None(_))
    }

    /// The item with what this mode withholds as its outcome.
    fn withheld(mut self, mode: &Mode) -> Self {
        let withheld = self.decision.withheld_by(&self.snapshot, mode);
        self.decision.effect = Effect::None(withheld.unwrap_or(Outcome::Done));
        self
    }

    /// Continues with the snapshot that was read when the intent was recorded.
    /// Keeps the facts for rendering that the decision used: a locked read loads none.
    fn prepared(&mut self, snapshot: ResourceSnapshot) {
        let provider = self.snapshot.provider.take();
        let read_as = self.snapshot.read_as.take();
        self.snapshot = ResourceSnapshot { provider, read_as, ..snapshot };
        self.read_at = Instant::now();
    }

    /// Advances the snapshot's time to now on the database's clock, by the time
    /// elapsed since the read. Never ahead of that clock: the measurement began
    /// after the read.
    fn bring_to_now(&mut self) {
        let now = Instant::now();
        self.snapshot.now = self.snapshot.now.plus(now.duration_since(self.read_at));
        self.read_at = now;
    }
}

impl Ticked {
    fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), is_logged: false }
    }

    /// Overtaken if another worker has the claim or somebody wrote the row meanwhile.
    fn of(error: &store::Error) -> Self {
        use slipway_core::ErrorKind::{ClaimLost, RevisionStale};
        match error {
            store::Error::Refused(refusal) if matches!(refusal.kind, ClaimLost | RevisionStale) => {
                Self::Overtaken
            }
            error => Self::Failed { message: error.to_string(), is_logged: error.is_logged() },
        }
    }

    const fn outcome(&self) -> TickOutcome {
        match self {
            Self::Recorded { .. } => TickOutcome::Recorded,
            Self::Unchanged(_) => TickOutcome::Unchanged,
            Self::Overtaken => TickOutcome::Overtaken,
            Self::Expiring => TickOutcome::Expiring,
            Self::Unanswered(_) | Self::Failed { .. } => TickOutcome::Failed,
        }
    }
}

/// The span that names resource and attempt in every log line of a tick.
fn tick_span(snapshot: &ResourceSnapshot) -> tracing::Span {
    tracing::error_span!(
        "tick",
        resource_id = %snapshot.resource.id,
        attempt_id = %snapshot.attempt.id(),
    )
}

/// Contains a panic about one resource, so that the batch survives it.
fn isolated<T>(step: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|_| "the tick panicked".to_owned())
}
