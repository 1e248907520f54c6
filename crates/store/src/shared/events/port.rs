//! Implements the port `EventStore`: the outbox and its subscriptions.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::events::port::{
    Backlog, ClaimedSubscription, PositionedEvent, Published, Subscription,
};
use slipway_app::ports::EventStore;
use slipway_app::ports::store::{Error, Page};
use slipway_core::access::audit::Actor;
use slipway_core::events::positions::Span;
use slipway_core::ids::{AuditEntryId, ProjectId, SubscriptionId};

use super::{Backend, of_project, outbox, prune, subscriptions};

#[async_trait]
impl EventStore for Backend {
    async fn outbox_relay(&self, limit: u32) -> Result<u64, Error> {
        // An idle relay must not take the write lock several times a second.
        if self.read((), outbox::has_unpublished).await? {
            self.write(limit, outbox::relay).await
        } else {
            Ok(0)
        }
    }

    async fn outbox_backlog(&self) -> Result<Backlog, Error> {
        self.read((), outbox::backlog).await
    }

    async fn event_list(&self, page: Page<i64>) -> Result<Vec<PositionedEvent>, Error> {
        self.read(page, outbox::list).await
    }

    async fn event_list_in(
        &self,
        project: ProjectId,
        page: Page<i64>,
    ) -> Result<Vec<PositionedEvent>, Error> {
        self.read((project, page), of_project::list).await
    }

    async fn event_span(&self) -> Result<Span, Error> {
        self.read((), outbox::current_span).await
    }

    async fn event_span_in(&self, project: ProjectId) -> Result<Span, Error> {
        self.read(project, of_project::span).await
    }

    async fn event_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error> {
        self.write((keep, limit), prune::prune).await
    }

    async fn subscription_open(&self, id: SubscriptionId, name: &str) -> Result<(), Error> {
        self.statement((id, name), subscriptions::open).await
    }

    async fn subscription_due(&self) -> Result<Vec<String>, Error> {
        self.read((), subscriptions::due).await
    }

    async fn subscription_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimedSubscription>, Error> {
        self.statement((name, worker, lease), subscriptions::claim).await
    }

    async fn subscription_advance(
        &self,
        claimed: &ClaimedSubscription,
        position: i64,
    ) -> Result<(), Error> {
        self.statement((claimed, position), subscriptions::advance).await
    }

    async fn subscription_release(
        &self,
        claimed: &ClaimedSubscription,
        published: &Published,
    ) -> Result<(), Error> {
        self.statement((claimed, published), subscriptions::release).await
    }

    async fn subscription_reclaim(&self, worker: &str) -> Result<u64, Error> {
        self.statement(worker, subscriptions::reclaim).await
    }

    async fn subscription_list(&self) -> Result<Vec<Subscription>, Error> {
        self.read((), subscriptions::list).await
    }

    async fn subscription_remove(
        &self,
        name: &str,
        audit: AuditEntryId,
        actor: &Actor,
    ) -> Result<bool, Error> {
        self.write((name, audit, actor), subscriptions::remove).await
    }
}
