//! The subscriber loop: delivers every event to every sink of this process, at
//! least once and in the order of positions. What counts as work is a
//! subscription whose cursor is behind the last position. The relay numbers
//! events; sinks decide nothing.
//!
//! Only the replica with the claim delivers to a subscription. It advances the
//! cursor under that claim after the sink has accepted the events; after a
//! crash in between, the next replica delivers them again, with the same ids. A
//! delivery starts only with more lease left than it may take, like every
//! outside action. An event whose row cannot be read is delivered as such and
//! recorded as a leak.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::Context;
use slipway_app::events::port::{ClaimedSubscription, PositionedEvent, Published};
use slipway_app::ports::EventSink;
use slipway_app::ports::store::{Error, Page};
use slipway_core::error::ErrorKind;
use slipway_core::events::unreadable;
use slipway_core::ids::SubscriptionId;
use slipway_durable::{Backoff, Lease};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::driver::{Failure, Loop, Pacing, failure};

/// The loop over subscriptions.
#[derive(Debug)]
pub struct Subscribers {
    context: Context,
    sinks: BTreeMap<String, Arc<dyn EventSink>>,
    worker: String,
    lease: Duration,
    opened: OnceCell<()>,
}

impl Subscribers {
    pub const NAME: &'static str = "event-subscribers";
    /// Each subscription is worked on in a task of its own, so that a hanging
    /// sink delays no other. With more sinks than slots, they share the slots.
    pub const PACING: Pacing = Pacing { slots: 16, batch: 1, poll: Duration::from_millis(250) };
    /// Events in one delivery: about 100 KiB at a kilobyte each.
    const BATCH: u32 = 100;
    const BACKOFF: Backoff =
        Backoff { base: Duration::from_secs(1), max: Duration::from_secs(300) };
    /// Characters that are stored of a sink's error.
    const ERROR_LENGTH: usize = 500;

    pub fn new(
        context: Context,
        sinks: Vec<Arc<dyn EventSink>>,
        worker: String,
        lease: Duration,
    ) -> Self {
        let sinks = sinks.into_iter().map(|sink| (sink.name().to_owned(), sink)).collect();
        Self { context, sinks, worker, lease, opened: OnceCell::new() }
    }

    /// Creates missing subscriptions, and ends the claims of an earlier process
    /// of this worker. Its only sink, the event log, writes a file in this process;
    /// a sink that sends events elsewhere would have to let its claims lapse.
    async fn open(&self) -> Result<(), Error> {
        let store = &self.context.stores;
        store.events.subscription_reclaim(&self.worker).await?;
        for name in self.sinks.keys() {
            let id = SubscriptionId::new(self.context.entropy.uuid());
            store.events.subscription_open(id, name).await?;
        }
        Ok(())
    }

    /// Delivers while there are events and lease left.
    ///
    /// After a database error the claim is not released, since the state of the
    /// cursor is unknown here; the lease expires.
    async fn publish(
        &self,
        claimed: &ClaimedSubscription,
        sink: &dyn EventSink,
        lease: Lease,
    ) -> Result<Published, Error> {
        let deadline = self.lease / 3;
        let mut failures = u32::try_from(claimed.failures).unwrap_or_default();
        let mut position = claimed.position;
        loop {
            let page = Page { after: Some(position), limit: Self::BATCH };
            let events = self.context.stores.events.event_list(page).await?;
            let Some(last) = events.last() else { return Ok(Published::Well) };
            if !lease.allows(deadline) {
                return Ok(Published::Well);
            }
            let error = match timeout(deadline, sink.publish(&events)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some(format!("it did not accept the events within {deadline:?}")),
            };
            if error.is_none() {
                self.record_unreadable(&events).await?;
            }
            if let Some(error) = error {
                let error: String = error.chars().take(Self::ERROR_LENGTH).collect();
                let jitter = self.context.entropy.jitter();
                let retry_after = Self::BACKOFF.delay(failures.saturating_add(1), jitter);
                return Ok(Published::Failed { error, retry_after });
            }
            self.context.stores.events.subscription_advance(claimed, last.position).await?;
            (position, failures) = (last.position, 0);
        }
    }

    /// Tells a person about events that the subscription passes although their rows
    /// cannot be read. Recorded before the cursor moves, so that none is missed.
    async fn record_unreadable(&self, events: &[PositionedEvent]) -> Result<(), Error> {
        for event in events {
            let Some(reason) = event.unreadable() else { continue };
            let now = self.context.stores.operations.database_now().await?;
            let leak = unreadable::leak(event.position, reason, now);
            self.context.stores.deletion.leak_record(&leak).await?;
            tracing::error!(
                position = event.position,
                reason,
                leak_id = %leak.id,
                "the row of an event cannot be read; subscribers pass it"
            );
        }
        Ok(())
    }

    async fn tend(&self, claimed: ClaimedSubscription, lease: Lease) -> Option<String> {
        let name = &claimed.name;
        let sink = self.sinks.get(name)?;
        let failed = |error: String| Some(format!("{name}: {error}"));
        let published = match self.publish(&claimed, sink.as_ref(), lease).await {
            Ok(published) => published,
            Err(Error::Refused(refusal)) if refusal.kind == ErrorKind::ClaimLost => {
                tracing::info!(name, "another replica has the subscription now");
                return None;
            }
            Err(error) => return failed(error.to_string()),
        };
        if let Err(error) =
            self.context.stores.events.subscription_release(&claimed, &published).await
        {
            return failed(error.to_string());
        }
        match published {
            Published::Well => {
                if claimed.failures > 0 {
                    tracing::info!(name, "a sink accepts events again");
                }
                None
            }
            Published::Failed { error, retry_after } => {
                // It failed before if nothing was delivered in between.
                if claimed.failures == 0 {
                    tracing::warn!(
                        name,
                        error,
                        "a sink does not accept events; this is logged again when it does"
                    );
                } else {
                    tracing::debug!(name, error, ?retry_after, "a sink did not accept events");
                }
                failed(error)
            }
        }
    }
}

#[async_trait]
impl Loop for Subscribers {
    type Item = ClaimedSubscription;

    fn lease(&self) -> Duration {
        self.lease
    }

    async fn claim(&self, limit: u32) -> Result<Vec<ClaimedSubscription>, Failure> {
        if self.sinks.is_empty() {
            return Ok(Vec::new());
        }
        let store = &self.context.stores;
        let claimed = async {
            self.opened.get_or_try_init(|| self.open()).await?;
            let mut claimed = Vec::new();
            for name in store.events.subscription_due().await? {
                if claimed.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
                    break;
                }
                // Skip subscriptions whose sink is in another process.
                if self.sinks.contains_key(&name) {
                    claimed.extend(
                        store.events.subscription_claim(&name, &self.worker, self.lease).await?,
                    );
                }
            }
            Ok::<_, Error>(claimed)
        };
        claimed.await.map_err(failure)
    }

    async fn work(&self, items: Vec<ClaimedSubscription>, lease: Lease) -> Vec<String> {
        let mut errors = Vec::new();
        for claimed in items {
            errors.extend(self.tend(claimed, lease).await);
        }
        errors
    }
}
