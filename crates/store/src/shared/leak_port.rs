//! The leak side of the port, method by method.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::leaks::{Cluster, LeakFilter, LeakRule, LeakStore, Sighted, Sightings};
use slipway_app::ports::store::{Error, Page};
use slipway_core::audit::Actor;
use slipway_core::ids::{ClusterId, LeakRecordId, ProvisionedResourceId};
use slipway_core::leak::{Claimant, Leak};
use slipway_core::time::Timestamp;

use super::{Backend, leak_rows, leaks};
use crate::retry::retried;

#[async_trait]
impl LeakStore for Backend {
    async fn cluster_list(&self) -> Result<Vec<Cluster>, Error> {
        Ok(retried!(leak_rows::clusters(self))?)
    }

    async fn claimant_load(
        &self,
        attempts: &[ProvisionedResourceId],
    ) -> Result<Vec<Claimant>, Error> {
        Ok(retried!(leak_rows::claimants(self, attempts))?)
    }

    async fn claimant_expecting(
        &self,
        cluster: ClusterId,
        page: Page<ProvisionedResourceId>,
    ) -> Result<Vec<Claimant>, Error> {
        Ok(retried!(leak_rows::expecting(self, cluster, page))?)
    }

    async fn attempt_wake(&self, attempts: &[ProvisionedResourceId]) -> Result<(), Error> {
        Ok(retried!(leaks::wake(self, attempts))?)
    }

    async fn leak_look_begin(&self) -> Result<Timestamp, Error> {
        Ok(retried!(leak_rows::now(self))?)
    }

    async fn leak_sighted(
        &self,
        cluster: &Cluster,
        sighted: &[Sighted],
        apart: Duration,
    ) -> Result<Sightings, Error> {
        Ok(retried!(leaks::sighted(self, cluster, sighted, apart))?)
    }

    async fn leak_look_end(
        &self,
        cluster: ClusterId,
        begun_at: Timestamp,
        actor: &Actor,
    ) -> Result<u64, Error> {
        Ok(retried!(leaks::look_end(self, cluster, begun_at, actor))?)
    }

    async fn leak_removals(&self, cluster: ClusterId, limit: u32) -> Result<Vec<Leak>, Error> {
        Ok(retried!(leak_rows::removals(self, cluster, limit))?)
    }

    async fn leak_list(
        &self,
        filter: &LeakFilter,
        page: Page<LeakRecordId>,
    ) -> Result<Vec<Leak>, Error> {
        Ok(retried!(leak_rows::list(self, filter, page))?)
    }

    async fn leak_fetch(&self, id: LeakRecordId) -> Result<Option<Leak>, Error> {
        Ok(retried!(leak_rows::fetch(self, id))?)
    }

    async fn leak_decide(&self, id: LeakRecordId, rule: &mut LeakRule<'_>) -> Result<(), Error> {
        Ok(retried!(leaks::decide(self, id, &mut *rule))?)
    }

    async fn leak_open_counts(&self) -> Result<BTreeMap<String, u64>, Error> {
        Ok(retried!(leak_rows::open_counts(self))?)
    }
}
