//! The port, method by method. Each calls the function that does it, runs it
//! again where the database asks for that, and translates the failure.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::Listed;
use slipway_app::ports::RecordStore;
use slipway_app::ports::store::{
    ApiKey, Claimed, CorruptRow, Decided, DeclareKey, DeclareRule, Error, Heartbeat, HistoryLine,
    Page, ResourceFilter, ResourceKey, ResourceRule, Store,
};
use slipway_app::seed::Seed;
use slipway_core::commit::{Recorded, Release};
use slipway_core::deletion::Deletion;
use slipway_core::ids::{
    ClusterId, DeletionId, InstallationId, Lane, NodeId, ProvisionedResourceId, ResourceId,
};
use slipway_core::node::{Node, Reported};
use slipway_core::snapshot::ResourceSnapshot;

use super::{Backend, batch, claims, decide, installation, keys, ping, reads, record, seed};
use crate::failure::Failure;
use crate::patience::{limited, limited_to};
use crate::retry::retried;

/// A probe waits two seconds for an answer; ours comes before it goes away.
const PING_LIMIT: Duration = Duration::from_millis(1_800);

#[async_trait]
impl RecordStore for Backend {
    async fn attempt_record(
        &self,
        records: &[Recorded],
    ) -> Result<HashSet<ProvisionedResourceId>, Error> {
        match retried!(record::record(self, records)) {
            Ok(recorded) => Ok(recorded),
            // Nothing was written; whose fault it is is found under lock, one by one.
            Err(failure) if failure.may_be_of_one_row() => {
                tracing::debug!(?failure, rows = records.len(), "records failed together");
                Ok(HashSet::new())
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

#[async_trait]
impl Store for Backend {
    async fn ping(&self) -> Result<(), Error> {
        Ok(limited_to(PING_LIMIT, ping::ping(self)).await?)
    }

    async fn installation(&self) -> Result<InstallationId, Error> {
        let mut connection = self.reader().await.map_err(Failure::from)?;
        Ok(limited(installation::fetch(&mut connection)).await.map_err(Failure::from)?)
    }

    async fn seed(&self, seed: &Seed) -> Result<ClusterId, Error> {
        Ok(retried!(seed::seed(self, seed))?)
    }

    async fn decide_declaration(
        &self,
        key: &DeclareKey,
        rule: &mut DeclareRule<'_>,
    ) -> Result<(), Error> {
        Ok(retried!(decide::decide_declaration(self, key, &mut *rule))?)
    }

    async fn decide(&self, key: ResourceKey, rule: &mut ResourceRule<'_>) -> Result<(), Error> {
        Ok(retried!(decide::decide(self, key, &mut *rule))?)
    }

    async fn decide_many(
        &self,
        attempts: &[ProvisionedResourceId],
        rule: &mut ResourceRule<'_>,
    ) -> Result<Vec<Decided>, Error> {
        batch::decide_many(self, attempts, rule).await
    }

    async fn attempt_claim(
        &self,
        worker: &str,
        lane: Lane,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<Claimed>, Error> {
        Ok(retried!(claims::claim(self, worker, lane, limit, lease))?)
    }

    async fn attempt_load(
        &self,
        ids: &[ProvisionedResourceId],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
        Ok(retried!(reads::attempt_load(self, ids))?)
    }

    async fn attempt_release(&self, releases: &[Release]) -> Result<(), Error> {
        Ok(retried!(claims::release(self, releases))?)
    }

    async fn attempt_hold(
        &self,
        claimed: Claimed,
        reason: &str,
        recheck: Duration,
    ) -> Result<(), Error> {
        Ok(retried!(claims::hold(self, claimed, reason, recheck))?)
    }

    async fn attempt_reclaim(&self, worker: &str) -> Result<u64, Error> {
        Ok(retried!(claims::reclaim(self, worker))?)
    }

    async fn attempt_wake_all(&self, lane: Lane) -> Result<u64, Error> {
        Ok(retried!(claims::wake_all(self, lane))?)
    }

    async fn attempt_overdue(&self, lane: Lane) -> Result<Option<Duration>, Error> {
        Ok(retried!(claims::overdue(self, lane))?)
    }

    async fn node_heartbeat(
        &self,
        id: NodeId,
        reported: &Reported,
    ) -> Result<Option<Heartbeat>, Error> {
        Ok(retried!(reads::node_heartbeat(self, id, reported))?)
    }

    async fn node_fetch(&self, id: NodeId) -> Result<Option<Node>, Error> {
        Ok(retried!(reads::node_fetch(self, id))?)
    }

    async fn node_list(&self, page: Page<NodeId>) -> Result<Listed<Node>, Error> {
        Ok(retried!(reads::node_list(self, page))?)
    }

    async fn resource_fetch(&self, id: ResourceId) -> Result<Option<ResourceSnapshot>, Error> {
        Ok(retried!(reads::resource_fetch(self, id))?)
    }

    async fn resource_list(
        &self,
        filter: &ResourceFilter,
        page: Page<ResourceId>,
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
        Ok(retried!(reads::resource_list(self, filter, page))?)
    }

    async fn history_list(&self, id: ProvisionedResourceId) -> Result<Vec<HistoryLine>, Error> {
        Ok(retried!(reads::history_list(self, id))?)
    }

    async fn deletion_fetch(&self, id: DeletionId) -> Result<Option<Deletion>, Error> {
        Ok(retried!(reads::deletion_fetch(self, id))?)
    }

    async fn deletion_list(&self, page: Page<DeletionId>) -> Result<Listed<Deletion>, Error> {
        Ok(retried!(reads::deletion_list(self, page))?)
    }

    async fn api_key_find(&self, short: &str) -> Result<Option<ApiKey>, Error> {
        Ok(retried!(keys::find(self, short))?)
    }

    async fn api_key_put(&self, key: &ApiKey) -> Result<(), Error> {
        Ok(retried!(keys::put(self, key))?)
    }

    async fn api_key_count(&self) -> Result<u64, Error> {
        Ok(retried!(keys::count(self))?)
    }
}
