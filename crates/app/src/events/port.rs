//! The store of the events domain: the outbox, its positions, and the durable
//! cursors of subscribers. Only the replica with the claim on a subscription
//! delivers to it.

use std::time::Duration;

use serde_json::Value;
use slipway_core::access::audit::Actor;
use slipway_core::events::positions::Span;
use slipway_core::events::unreadable;
use slipway_core::ids::{
    AuditEntryId, ClaimToken, EventId, ProjectId, ResourceId, Revision, SubscriptionId,
};
use slipway_core::time::Timestamp;
use uuid::Uuid;

use crate::ports::store::{Error, Page};

/// An event that has its position.
#[derive(Debug, Clone, PartialEq)]
pub struct PositionedEvent {
    /// The stable message id: the same in every delivery.
    pub id: EventId,
    pub position: i64,
    pub event_type: String,
    pub aggregate_id: Uuid,
    /// `None` for a subject that belongs to no project; only readers of all
    /// projects see the event.
    pub project_id: Option<ProjectId>,
    pub revision: Revision,
    pub occurred_at: Timestamp,
    /// What it announces was not proven outside: a person abandoned it.
    pub abandoned: bool,
    /// The resource that the subject belongs to, and its handle. `None` for a subject of
    /// another kind.
    pub resource: Option<(ResourceId, String)>,
    /// What a retry changed in the declaration: `version`, `parameters.<name>`.
    pub changed: Vec<String>,
    pub payload: Value,
}

impl PositionedEvent {
    /// Why the row cannot be read, if it cannot. Such an event has its position,
    /// the type [`unreadable::TYPE`] and what could be read of the row.
    pub fn unreadable(&self) -> Option<&str> {
        let reason = self.payload.get("reason").and_then(Value::as_str);
        (self.event_type == unreadable::TYPE).then(|| reason.unwrap_or_default())
    }
}

/// Events that were committed and have no position yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Counts up to 10,000, which then means 10,000 or more.
    pub waiting: u64,
    /// The age of the oldest of them.
    pub oldest: Option<Duration>,
}

/// A subscription, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub id: SubscriptionId,
    pub name: String,
    /// Everything up to here was delivered.
    pub position: i64,
    /// The last position that any event has.
    pub last_position: i64,
    /// Failed deliveries in a row, and the error of the last one.
    pub failures: i32,
    pub last_error: Option<String>,
    /// When the cursor last moved.
    pub published_at: Option<Timestamp>,
    /// No delivery before this time.
    pub due_at: Timestamp,
    pub claimed_by: Option<String>,
}

/// A subscription that this worker may deliver to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedSubscription {
    pub id: SubscriptionId,
    pub name: String,
    pub claim_token: ClaimToken,
    pub position: i64,
    pub failures: i32,
}

/// How a claim ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// Delivered as far as there was time or events.
    Well,
    /// The sink refused; the next try comes after the pause.
    Failed { error: String, retry_after: Duration },
}

port! {
/// Everything about the outbox and its subscriptions.
pub trait EventStore, intercepted by EventIntercept {
    /// Gives the next dense positions to up to `limit` events, in commit order;
    /// returns how many.
    async fn outbox_relay(&self, limit: u32) -> Result<u64, Error>;

    async fn outbox_backlog(&self) -> Result<Backlog, Error>;

    /// Events after the position, in order. Without a position, from the oldest
    /// that is kept.
    async fn event_list(&self, page: Page<i64>) -> Result<Vec<PositionedEvent>, Error>;

    /// Like `event_list`, without the events of other projects.
    async fn event_list_in(
        &self,
        project: ProjectId,
        page: Page<i64>,
    ) -> Result<Vec<PositionedEvent>, Error>;

    /// Which events are kept. To be sure that a list has no gap, read the list
    /// first and this span afterwards: it then covers every event pruned before
    /// the list was read.
    async fn event_span(&self) -> Result<Span, Error>;

    /// Like `event_span` for a reader of this project: pruned events of other
    /// projects do not count as missed.
    async fn event_span_in(&self, project: ProjectId) -> Result<Span, Error>;

    /// Removes the oldest events, up to `limit` of them, if they are older than
    /// `keep` and every subscription has received them. Remembers the highest
    /// removed position.
    async fn event_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

    /// Creates the subscription of this name if there is none; a new one starts
    /// with the oldest event that is kept.
    async fn subscription_open(&self, id: SubscriptionId, name: &str) -> Result<(), Error>;

    /// Names of subscriptions that have events to deliver, are due, and are
    /// unclaimed; the one that waited longest first.
    async fn subscription_due(&self) -> Result<Vec<String>, Error>;

    /// Claims it, if those conditions still hold.
    async fn subscription_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimedSubscription>, Error>;

    /// Everything up to `position` was delivered. Refuses with `claim_lost` if
    /// another worker has the claim now: that one delivers the same events
    /// again.
    async fn subscription_advance(
        &self,
        claimed: &ClaimedSubscription,
        position: i64,
    ) -> Result<(), Error>;

    /// Releases the claim if it is still ours.
    async fn subscription_release(
        &self,
        claimed: &ClaimedSubscription,
        published: &Published,
    ) -> Result<(), Error>;

    /// Ends the claims of an earlier process of this worker, which is over.
    async fn subscription_reclaim(&self, worker: &str) -> Result<u64, Error>;

    /// In the order of their names.
    async fn subscription_list(&self) -> Result<Vec<Subscription>, Error>;

    /// Removes a subscription, with an audit entry; events are no longer kept
    /// for it. `false` if there is none.
    async fn subscription_remove(
        &self,
        name: &str,
        audit: AuditEntryId,
        actor: &Actor,
    ) -> Result<bool, Error>;
}
}
