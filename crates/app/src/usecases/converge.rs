//! The tick: claimed resources in, outside actions and records out.
//!
//! [`Batch::tick`] is the whole order, and the order is the point: load,
//! observe, decide, record the intent, act, record the outcome, give the claim
//! back. A crash between any two leaves a state that the next tick recognises.
//! `slipway_core` decides (`rules::decide`) and says what is written
//! (`rules::prepare`, `rules::record`); the loop in `controller` claims.
//!
//! Resources of a batch share transactions and nothing else: an error, a refusal
//! or a panic of one is its own, and the others do not notice.

mod act;
mod engines;
mod write;

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use slipway_core::audit::Actor;
use slipway_core::commit::Release;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::observation::CompositeReport;
use slipway_core::phase::Action;
use slipway_core::rules::control::Mode;
use slipway_core::rules::decide::{Decision, Effect, Facts, Outcome, decide};
use slipway_core::rules::record::Pace;
use slipway_core::snapshot::ResourceSnapshot;
use tokio::sync::{Notify, Semaphore};

use self::act::Minted;
use self::engines::address;
pub use self::engines::{Engines, observe};
use crate::Context;
use crate::permits::Permits;
use crate::ports::broker::Claimed;
use crate::ports::meter::TickOutcome;
use crate::ports::store::{self, CorruptRow};

/// How long one outside action, or one observation, may take under a lease of
/// this length. An action is started only with more lease left than this, and
/// abandoned after it: actions are idempotent, and the next observation shows
/// what became of it. A third: the batch is loaded and observed before the
/// action and recorded after it, and each gets as much again.
pub fn action_deadline(lease: Duration) -> Duration {
    lease / 3
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

/// The claims of a batch, as whoever renews them knows them. How much lease is
/// left is a matter of the process's own clock.
pub trait Claims: Send + Sync {
    /// Whether an action with this deadline may start on this row.
    fn allow(&self, id: ProvisionedResourceId, deadline: Duration) -> bool;

    /// These were given back, or are somebody else's; they are renewed no more.
    fn ended(&self, ids: &[ProvisionedResourceId]);

    /// How long the batch has been worked on.
    fn age(&self) -> Duration;
}

/// What all ticks of a batch have in common.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub context: &'a Context,
    pub engines: &'a Engines,
    /// The name of the cluster that the batch lives on.
    pub cluster: &'a str,
    pub pace: Pace,
    pub batching: Batching,
    pub actor: &'a Actor,
    /// How long one outside action may take, see [`action_deadline`].
    pub action_deadline: Duration,
    /// Outside actions on the cluster that may still be begun now.
    pub actions: &'a Semaphore,
    /// Asked right before each outside action whether the mode lets it through.
    pub permits: &'a Permits,
    /// The mode as it was when the batch was claimed.
    pub mode: &'a Mode,
    pub claims: &'a dyn Claims,
    /// Notified when a phase changed, so that what follows is claimed at once.
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
    /// Drawn where the decision mints.
    minted: Option<Minted>,
    /// When the snapshot had been read.
    read_at: Instant,
}

/// How a tick ended.
#[derive(Debug)]
enum Ticked {
    /// Recorded, with the claim given back in the same transaction.
    Recorded { action: Action, changed_phase: bool },
    /// Nothing to record; the claim is given back with others of its batch.
    Unchanged(Release),
    /// Another worker or writer was faster; nothing was written here.
    Overtaken,
    /// The claim is about to end; nothing was begun, and the next tick acts.
    Expiring,
    /// It failed inside us, for this reason.
    Failed(String),
}

type Ended = (ResourceSnapshot, Ticked);

/// What has been done and is to be recorded, or what ended before.
type Acted = Result<(Item, Outcome), Ended>;

impl Batch<'_> {
    /// One tick of each claimed resource, from the claim to its end. Answers the
    /// errors, each of which is shown on its resource too if that can be
    /// written.
    ///
    /// The intents of a batch are one transaction. What needs no outside action
    /// is recorded at once; of the others, as many at a time as are done by
    /// then, so that a slow action holds back nobody but itself.
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
        errors
    }

    /// Loads the claimed rows. A row that cannot be used gets a blocker, alone.
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
                    // A row whose claim moved between claim and load is somebody
                    // else's.
                    let ours = |claimed: &Claimed| claimed.claim_token == snapshot.claim_token;
                    if open.get(&id).is_some_and(ours) {
                        open.remove(&id);
                        snapshots.push(snapshot);
                    }
                }
                Err(CorruptRow { id, reason, .. }) => {
                    // The row does not even say of what resource it is.
                    let attempt_id = id;
                    tracing::error!(%attempt_id, reason, "a row breaks an invariant and is held");
                    errors.push(format!("{id}: {reason}"));
                    if let Some(claimed) = open.get(&id) {
                        let written =
                            store.attempt_quarantine(*claimed, &reason, self.pace.sweep).await;
                        errors.extend(written.err().map(|error| error.to_string()));
                    }
                }
            }
        }
        let lost: Vec<_> = open.values().map(|claimed| claimed.id).collect();
        self.claims.ended(&lost);
        (snapshots, errors)
    }

    /// Decides about each, and draws the tokens that are to be minted.
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
                Err(panicked) => ended.push((snapshot, Ticked::Failed(panicked))),
            }
        }
        (decided, ended)
    }

    fn may_act(&self, snapshot: &ResourceSnapshot) -> bool {
        self.claims.allow(snapshot.attempt.id(), self.action_deadline)
    }
}

impl Item {
    /// Whether something outside is asked for, and may be slow.
    fn acts(&self) -> bool {
        !matches!(self.decision.effect, Effect::None(_))
    }

    /// Goes on from what was read when the intent was recorded. The facts of the
    /// cloud stay those that the decision was made on: a locked read loads none.
    fn prepared(&mut self, snapshot: ResourceSnapshot) {
        let provider = self.snapshot.provider.take();
        self.snapshot = ResourceSnapshot { provider, ..snapshot };
        self.read_at = Instant::now();
    }

    /// Brings the snapshot's time to the database's time of now, counted on
    /// from when it was read. Never ahead of that clock: the count began after
    /// the reading.
    fn bring_to_now(&mut self) {
        let now = Instant::now();
        self.snapshot.now = self.snapshot.now.plus(now.duration_since(self.read_at));
        self.read_at = now;
    }
}

impl Ticked {
    /// Overtaken if somebody else holds the row or wrote it meanwhile.
    fn of(error: &store::Error) -> Self {
        use slipway_core::ErrorKind::{ClaimLost, RevisionStale};
        match error {
            store::Error::Refused(refusal) if matches!(refusal.kind, ClaimLost | RevisionStale) => {
                Self::Overtaken
            }
            error => Self::Failed(error.to_string()),
        }
    }

    const fn outcome(&self) -> TickOutcome {
        match self {
            Self::Recorded { .. } => TickOutcome::Recorded,
            Self::Unchanged(_) => TickOutcome::Unchanged,
            Self::Overtaken => TickOutcome::Overtaken,
            Self::Expiring => TickOutcome::Expiring,
            Self::Failed(_) => TickOutcome::Failed,
        }
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

/// A panic about one resource must not take the batch with it.
fn isolated<T>(step: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|_| "the tick panicked".to_owned())
}
