//! The generic driver of a loop.
//!
//! An activation takes no input: it claims due work, up to the free slots, and
//! hands the batch to a task of its own. It does not retry inside; a failed
//! item becomes due again by its own row. A panic in a batch is that batch's
//! error: its leases expire and the rows are claimed again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::{Backoff, Lease, Moment};

/// A loop: how it claims work and what it does with it.
#[async_trait]
pub trait Loop: fmt::Debug + Send + Sync + 'static {
    type Item: Send + 'static;

    /// Whether each item is worked on alone, so that its slot is free when it ends. Otherwise
    /// those of one claim are one piece of work.
    const ALONE: bool = false;

    /// How long a claim lasts. A loop that claims nothing beyond its statement
    /// keeps the default: a lease of zero allows no action.
    fn lease(&self) -> Duration {
        Duration::ZERO
    }

    /// Called once when the process is to stop: work under way should end soon.
    fn wind_down(&self) {}

    /// Claims up to `limit` items. An empty batch is no error.
    async fn claim(&self, limit: u32) -> Result<Vec<Self::Item>, Failure>;

    /// Works on the items. Each answered text is the error of one item. A loop
    /// whose work is one statement does it in `claim` and leaves nothing to work on.
    async fn work(&self, _items: Vec<Self::Item>, _lease: Lease) -> Vec<String> {
        Vec::new()
    }
}

/// Why a claim or a renewal failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// Whoever noticed the cause logs it, once for everything that it affects. A
    /// database that is away fails every loop several times a second.
    pub is_logged: bool,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, is_logged: false }
    }
}

/// How a loop is paced.
#[derive(Debug, Clone, Copy)]
pub struct Pacing {
    /// Items under way at once.
    pub slots: u32,
    /// Items claimed by one statement.
    pub batch: u32,
    /// How often the loop claims without a wake.
    pub poll: Duration,
}

/// Tells loops to stop claiming and to finish the work under way.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// The sender that requests shutdown, and the receiver for the loops.
    pub fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once shutdown is requested, or its sender is dropped.
    pub async fn requested(&mut self) {
        // An error means that the sender was dropped, which is a request too.
        while !self.is_requested() {
            if self.0.changed().await.is_err() {
                return;
            }
        }
    }
}

/// The process that a loop runs in: it publishes what the loop reports, and
/// draws the random number that spreads retries.
pub trait Host: Send + Sync + 'static {
    /// The loop claimed this many items.
    fn activated(&self, claimed: usize);

    /// An item, or a whole activation, ended in an error.
    fn failed(&self, error: String);

    /// A number in `0..1`.
    fn jitter(&self) -> f64;
}

/// How long the loop waits after a failed claim.
const CLAIM_BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(100), max: Duration::from_secs(5) };

/// Runs the loop until shutdown, then waits for the work under way.
pub async fn drive<L: Loop>(
    work: Arc<L>,
    pacing: Pacing,
    wake: Arc<Notify>,
    host: Arc<dyn Host>,
    mut shutdown: Shutdown,
) {
    let slots = Arc::new(Semaphore::new(usize::try_from(pacing.slots).unwrap_or(1)));
    let mut batches: JoinSet<()> = JoinSet::new();
    let mut failures = 0;
    let mut logged = LogOnce::default();
    while !shutdown.is_requested() {
        while let Some(ended) = batches.try_join_next() {
            note_panic(&*host, ended);
        }
        let free = u32::try_from(slots.available_permits()).unwrap_or(u32::MAX);
        let mut full = false;
        if free > 0 {
            let limit = free.min(pacing.batch);
            // Read before the claim, so that the loop never overestimates its lease.
            let asked_before = Moment::now();
            match work.claim(limit).await {
                Ok(items) => {
                    failures = 0;
                    if logged.is_over() {
                        tracing::info!("due work can be claimed again");
                    }
                    host.activated(items.len());
                    full = u32::try_from(items.len()).is_ok_and(|count| count >= limit);
                    if !items.is_empty() {
                        let lease = Lease::new(asked_before, work.lease());
                        for items in pieces::<L>(items) {
                            spawn(&mut batches, &work, &slots, items, lease, &host);
                        }
                    }
                }
                Err(Failure { message: error, is_logged }) => {
                    failures += 1;
                    if !is_logged && logged.is_news(&error) {
                        tracing::warn!(%error, "could not claim due work; retrying, and logging again when the error changes");
                    } else {
                        tracing::debug!(%error, failures, "could not claim due work");
                    }
                    host.failed(error);
                }
            }
        }
        if full && failures == 0 {
            continue;
        }
        let pause =
            if failures > 0 { CLAIM_BACKOFF.delay(failures, host.jitter()) } else { pacing.poll };
        tokio::select! {
            () = wake.notified(), if failures == 0 && free > 0 => {}
            Some(ended) = batches.join_next(), if !batches.is_empty() => note_panic(&*host, ended),
            () = tokio::time::sleep(pause) => {}
            () = shutdown.requested() => {}
        }
    }
    work.wind_down();
    while let Some(ended) = batches.join_next().await {
        note_panic(&*host, ended);
    }
}

/// Logs why claims fail: each error once, until it changes. A loop that fails
/// every few seconds for hours would drown every other log line.
#[derive(Debug, Default)]
struct LogOnce(Option<String>);

impl LogOnce {
    fn is_news(&mut self, error: &str) -> bool {
        let news = self.0.as_deref() != Some(error);
        if news {
            self.0 = Some(error.to_owned());
        }
        news
    }

    /// Whether an error was logged since the last success.
    fn is_over(&mut self) -> bool {
        self.0.take().is_some()
    }
}

/// What is worked on together.
fn pieces<L: Loop>(items: Vec<L::Item>) -> Vec<Vec<L::Item>> {
    if L::ALONE { items.into_iter().map(|item| vec![item]).collect() } else { vec![items] }
}

fn spawn<L: Loop>(
    batches: &mut JoinSet<()>,
    work: &Arc<L>,
    slots: &Arc<Semaphore>,
    items: Vec<L::Item>,
    lease: Lease,
    host: &Arc<dyn Host>,
) {
    let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
    // This cannot fail: only this task takes permits, and no more than are free.
    let permits = Arc::clone(slots).try_acquire_many_owned(count);
    let (work, host) = (Arc::clone(work), Arc::clone(host));
    batches.spawn(async move {
        for error in work.work(items, lease).await {
            host.failed(error);
        }
        drop(permits);
    });
}

fn note_panic(host: &dyn Host, ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a batch panicked; its claims run out and are taken again");
        host.failed(format!("a batch panicked: {error}"));
    }
}

#[cfg(test)]
mod tests;
