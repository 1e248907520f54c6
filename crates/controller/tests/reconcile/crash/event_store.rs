//! The events' side of the store as one life sees it: numbering, claims of
//! subscriptions and the writes of their cursors are passages; reads are not.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::events::{Backlog, EventStore, PositionedEvent};
use slipway_app::ports::retention::{AuditPruned, RetentionStore};
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::subscriptions::{
    ClaimedSubscription, Delivered, Subscription, SubscriptionStore,
};
use slipway_core::audit::Actor;
use slipway_core::ids::{AuditEntryId, SubscriptionId};
use slipway_core::rules::positions::Span;

use super::store::FatedStore;

#[async_trait]
impl EventStore for FatedStore {
    async fn outbox_relay(&self, limit: u32) -> Result<u64, Error> {
        self.fate.alive().await;
        let count = self.inner.outbox_relay(limit).await?;
        if count > 0 {
            self.after("commit:relay").await?;
        }
        Ok(count)
    }

    async fn outbox_backlog(&self) -> Result<Backlog, Error> {
        self.fate.alive().await;
        self.inner.outbox_backlog().await
    }

    async fn event_list(&self, page: Page<i64>) -> Result<Vec<PositionedEvent>, Error> {
        self.fate.alive().await;
        self.inner.event_list(page).await
    }

    async fn event_span(&self) -> Result<Span, Error> {
        self.fate.alive().await;
        self.inner.event_span().await
    }
}

#[async_trait]
impl SubscriptionStore for FatedStore {
    async fn subscription_open(&self, id: SubscriptionId, name: &str) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.subscription_open(id, name).await?;
        self.after("commit:subscription open").await
    }

    async fn subscription_due(&self) -> Result<Vec<String>, Error> {
        self.fate.alive().await;
        self.inner.subscription_due().await
    }

    async fn subscription_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimedSubscription>, Error> {
        self.fate.alive().await;
        let claimed = self.inner.subscription_claim(name, worker, lease).await?;
        if claimed.is_some() {
            self.after("commit:subscription claim").await?;
        }
        Ok(claimed)
    }

    async fn subscription_advance(
        &self,
        claimed: &ClaimedSubscription,
        position: i64,
    ) -> Result<(), Error> {
        self.before("commit:cursor").await?;
        self.inner.subscription_advance(claimed, position).await?;
        self.after("commit:cursor").await
    }

    async fn subscription_release(
        &self,
        claimed: &ClaimedSubscription,
        delivered: &Delivered,
    ) -> Result<(), Error> {
        self.before("commit:subscription release").await?;
        self.inner.subscription_release(claimed, delivered).await?;
        self.after("commit:subscription release").await
    }

    async fn subscription_reclaim(&self, worker: &str) -> Result<u64, Error> {
        self.fate.alive().await;
        let count = self.inner.subscription_reclaim(worker).await?;
        self.after("commit:subscription reclaim").await?;
        Ok(count)
    }

    async fn subscription_list(&self) -> Result<Vec<Subscription>, Error> {
        self.fate.alive().await;
        self.inner.subscription_list().await
    }

    async fn subscription_remove(
        &self,
        name: &str,
        audit: AuditEntryId,
        actor: &Actor,
    ) -> Result<bool, Error> {
        self.fate.alive().await;
        self.inner.subscription_remove(name, audit, actor).await
    }
}

#[async_trait]
impl RetentionStore for FatedStore {
    async fn event_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error> {
        self.fate.alive().await;
        self.inner.event_prune(keep, limit).await
    }

    async fn history_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error> {
        self.fate.alive().await;
        self.inner.history_prune(keep, limit).await
    }

    async fn audit_prune(
        &self,
        keep: Duration,
        after: Option<AuditEntryId>,
        limit: u32,
    ) -> Result<AuditPruned, Error> {
        self.fate.alive().await;
        self.inner.audit_prune(keep, after, limit).await
    }
}
