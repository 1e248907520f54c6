//! The store of the room events: the outbox, its numbering, and the durable
//! cursors of subscribers. A subscription is worked on by one replica at a time:
//! the one that has its claim.

use std::time::Duration;

use serde_json::Value;
use slipway_core::audit::Actor;
use slipway_core::ids::{AuditEntryId, ClaimToken, EventId, ProjectId, Revision, SubscriptionId};
use slipway_core::rules::positions::Span;
use slipway_core::time::Timestamp;
use uuid::Uuid;

use super::store::{Error, Page};

/// An event that has its position.
#[derive(Debug, Clone, PartialEq)]
pub struct PositionedEvent {
    /// The stable message id: the same however often it is delivered.
    pub id: EventId,
    pub position: i64,
    pub event_type: String,
    pub aggregate_id: Uuid,
    pub project_id: ProjectId,
    pub revision: Revision,
    pub occurred_at: Timestamp,
    pub payload: Value,
}

/// Events that were committed and have no position yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Counted up to 10,000; what is more is said to be so many.
    pub waiting: u64,
    /// How long ago the oldest of them happened.
    pub oldest: Option<Duration>,
}

/// A subscription, for people to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub id: SubscriptionId,
    pub name: String,
    /// Everything up to here was delivered.
    pub position: i64,
    /// How far it could be.
    pub last_position: i64,
    /// Deliveries that failed in a row, and what the last one said.
    pub failures: i32,
    pub last_error: Option<String>,
    /// When the cursor last moved.
    pub published_at: Option<Timestamp>,
    /// Not delivered to before this.
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
    /// As far as there was time or events.
    Well,
    /// The sink refused; it is tried again after the pause.
    Failed { error: String, retry_after: Duration },
}

port! {
/// What the application asks of the outbox and its subscriptions.
pub trait EventStore, intercepted by EventIntercept {
    /// Gives the next dense positions to up to `limit` events, in commit
    /// order; says how many.
    async fn outbox_relay(&self, limit: u32) -> Result<u64, Error>;

    async fn outbox_backlog(&self) -> Result<Backlog, Error>;

    /// Events after the position, in order. Without one, from the oldest that
    /// is kept.
    async fn event_list(&self, page: Page<i64>) -> Result<Vec<PositionedEvent>, Error>;

    /// As `event_list`, with the positions of other projects' events missing.
    async fn event_list_in(
        &self,
        project: ProjectId,
        page: Page<i64>,
    ) -> Result<Vec<PositionedEvent>, Error>;

    /// Which events are kept. Whoever wants to know that a list has no hole
    /// asks for the list first and for this afterwards: events that were
    /// pruned before the list was read are then known to be.
    async fn event_span(&self) -> Result<Span, Error>;

    /// As `event_span`, as far as this project's reader can tell: events of
    /// others that were pruned are none that it missed.
    async fn event_span_in(&self, project: ProjectId) -> Result<Span, Error>;

    /// Removes the oldest events, up to `limit` of them, as long as they
    /// happened longer ago than `keep` and every subscription has had them.
    /// The highest position that is gone is kept.
    async fn event_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

    /// Makes the subscription of this name if there is none; a new one starts
    /// with the oldest event that is kept.
    async fn subscription_open(&self, id: SubscriptionId, name: &str) -> Result<(), Error>;

    /// Names of those that have events to deliver, are due, and are claimed by
    /// nobody; the one that waited longest first.
    async fn subscription_due(&self) -> Result<Vec<String>, Error>;

    /// Claims it, if it is still so.
    async fn subscription_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimedSubscription>, Error>;

    /// Everything up to `position` was delivered. Refused with `claim_lost` if
    /// another worker has it now: that one delivers the same events again.
    async fn subscription_advance(
        &self,
        claimed: &ClaimedSubscription,
        position: i64,
    ) -> Result<(), Error>;

    /// Gives the claim back where it is still held.
    async fn subscription_release(
        &self,
        claimed: &ClaimedSubscription,
        published: &Published,
    ) -> Result<(), Error>;

    /// Ends the claims of an earlier life of this worker, which is over.
    async fn subscription_reclaim(&self, worker: &str) -> Result<u64, Error>;

    /// In the order of their names.
    async fn subscription_list(&self) -> Result<Vec<Subscription>, Error>;

    /// Forgets a subscription, with an audit entry; events are no longer kept
    /// for it. False if there is none.
    async fn subscription_remove(
        &self,
        name: &str,
        audit: AuditEntryId,
        actor: &Actor,
    ) -> Result<bool, Error>;
}
}
