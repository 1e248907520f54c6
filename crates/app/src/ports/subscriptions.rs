//! The durable cursors of subscribers. A subscription is worked on by one
//! replica at a time: the one that holds its claim.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use slipway_core::audit::Actor;
use slipway_core::ids::{AuditEntryId, ClaimToken, SubscriptionId};
use slipway_core::time::Timestamp;

use super::store::Error;

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
    pub delivered_at: Option<Timestamp>,
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
pub enum Delivered {
    /// As far as there was time or events.
    Well,
    /// The sink refused; it is tried again after the pause.
    Failed { error: String, retry_after: Duration },
}

#[async_trait]
pub trait SubscriptionStore: fmt::Debug + Send + Sync {
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
        delivered: &Delivered,
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
