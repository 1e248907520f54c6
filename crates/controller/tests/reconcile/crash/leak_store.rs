//! The sides of the store that no crash scenario goes through: delegated as
//! they are.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::leaks::{Cluster, LeakFilter, LeakRule, LeakStore, Sighted, Sightings};
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::tasks::{Task, TaskStore};
use slipway_core::audit::Actor;
use slipway_core::ids::{ClaimToken, ClusterId, LeakRecordId, ProvisionedResourceId};
use slipway_core::leak::{Claimant, Leak};
use slipway_core::time::Timestamp;

use super::store::FatedStore;

#[async_trait]
impl LeakStore for FatedStore {
    async fn cluster_list(&self) -> Result<Vec<Cluster>, Error> {
        self.fate.alive().await;
        self.inner.cluster_list().await
    }

    async fn claimant_load(
        &self,
        attempts: &[ProvisionedResourceId],
    ) -> Result<Vec<Claimant>, Error> {
        self.fate.alive().await;
        self.inner.claimant_load(attempts).await
    }

    async fn claimant_expecting(
        &self,
        cluster: ClusterId,
        page: Page<ProvisionedResourceId>,
    ) -> Result<Vec<Claimant>, Error> {
        self.fate.alive().await;
        self.inner.claimant_expecting(cluster, page).await
    }

    async fn attempt_wake(&self, attempts: &[ProvisionedResourceId]) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.attempt_wake(attempts).await
    }

    async fn leak_look_begin(&self) -> Result<Timestamp, Error> {
        self.fate.alive().await;
        self.inner.leak_look_begin().await
    }

    async fn leak_sighted(
        &self,
        cluster: &Cluster,
        sighted: &[Sighted],
        apart: Duration,
    ) -> Result<Sightings, Error> {
        self.fate.alive().await;
        self.inner.leak_sighted(cluster, sighted, apart).await
    }

    async fn leak_look_end(
        &self,
        cluster: ClusterId,
        begun_at: Timestamp,
        actor: &Actor,
    ) -> Result<u64, Error> {
        self.fate.alive().await;
        self.inner.leak_look_end(cluster, begun_at, actor).await
    }

    async fn leak_removals(&self, cluster: ClusterId, limit: u32) -> Result<Vec<Leak>, Error> {
        self.fate.alive().await;
        self.inner.leak_removals(cluster, limit).await
    }

    async fn leak_list(
        &self,
        filter: &LeakFilter,
        page: Page<LeakRecordId>,
    ) -> Result<Vec<Leak>, Error> {
        self.fate.alive().await;
        self.inner.leak_list(filter, page).await
    }

    async fn leak_fetch(&self, id: LeakRecordId) -> Result<Option<Leak>, Error> {
        self.fate.alive().await;
        self.inner.leak_fetch(id).await
    }

    async fn leak_decide(&self, id: LeakRecordId, rule: &mut LeakRule<'_>) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.leak_decide(id, rule).await
    }

    async fn leak_open_counts(&self) -> Result<BTreeMap<String, u64>, Error> {
        self.fate.alive().await;
        self.inner.leak_open_counts().await
    }
}

#[async_trait]
impl TaskStore for FatedStore {
    async fn task_ensure(&self, name: &str, within: Duration) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.task_ensure(name, within).await
    }

    async fn task_reclaim(&self, worker: &str) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.task_reclaim(worker).await
    }

    async fn task_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimToken>, Error> {
        self.fate.alive().await;
        self.inner.task_claim(name, worker, lease).await
    }

    async fn task_release(
        &self,
        name: &str,
        claim: ClaimToken,
        next: Duration,
        error: Option<&str>,
    ) -> Result<bool, Error> {
        self.fate.alive().await;
        self.inner.task_release(name, claim, next, error).await
    }

    async fn task_wake(&self, name: &str) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.task_wake(name).await
    }

    async fn task_list(&self) -> Result<Vec<Task>, Error> {
        self.fate.alive().await;
        self.inner.task_list().await
    }
}
