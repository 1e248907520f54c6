//! The port, method by method. Each sends the function that does it through a
//! door of the choke point.

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

use super::{Backend, batch, claims, decide, installation, keys, reads, record, seed};

/// A probe waits two seconds for an answer; ours comes before it goes away.
const PING_LIMIT: Duration = Duration::from_millis(1_800);

#[async_trait]
impl RecordStore for Backend {
    async fn attempt_record(
        &self,
        records: &[Recorded],
    ) -> Result<HashSet<ProvisionedResourceId>, Error> {
        match record::record(self, records).await {
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
        Ok(self.database.within(PING_LIMIT, self.read_and_write()).await?)
    }

    async fn installation(&self) -> Result<InstallationId, Error> {
        self.read((), installation::read).await
    }

    async fn seed(&self, seed: &Seed) -> Result<ClusterId, Error> {
        self.write(seed, seed::seed).await
    }

    async fn decide_declaration(
        &self,
        key: &DeclareKey,
        rule: &mut DeclareRule<'_>,
    ) -> Result<(), Error> {
        self.decided(key, rule).await
    }

    async fn decide(&self, key: ResourceKey, rule: &mut ResourceRule<'_>) -> Result<(), Error> {
        self.decided(decide::ByKey { blueprints: &self.blueprints, key }, rule).await
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
        self.statement((worker, lane, limit, lease), claims::claim).await
    }

    async fn attempt_load(
        &self,
        ids: &[ProvisionedResourceId],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
        self.read_snapshot((&self.blueprints, ids), reads::attempt_load).await
    }

    async fn attempt_release(&self, releases: &[Release]) -> Result<(), Error> {
        self.statement(releases, claims::release).await
    }

    async fn attempt_hold(
        &self,
        claimed: Claimed,
        reason: &str,
        recheck: Duration,
    ) -> Result<(), Error> {
        self.write((claimed, reason, recheck), claims::hold).await
    }

    async fn attempt_reclaim(&self, worker: &str) -> Result<u64, Error> {
        self.statement(worker, claims::reclaim).await
    }

    async fn attempt_wake_all(&self, lane: Lane) -> Result<u64, Error> {
        self.statement(lane, claims::wake_all).await
    }

    async fn attempt_overdue(&self, lane: Lane) -> Result<Option<Duration>, Error> {
        self.read(lane, claims::overdue).await
    }

    async fn node_heartbeat(
        &self,
        id: NodeId,
        reported: &Reported,
    ) -> Result<Option<Heartbeat>, Error> {
        self.statement((id, reported), reads::node_heartbeat).await
    }

    async fn node_fetch(&self, id: NodeId) -> Result<Option<Node>, Error> {
        self.read(id, reads::node_fetch).await
    }

    async fn node_list(&self, page: Page<NodeId>) -> Result<Listed<Node>, Error> {
        self.read(page, reads::node_list).await
    }

    async fn resource_fetch(&self, id: ResourceId) -> Result<Option<ResourceSnapshot>, Error> {
        self.read_snapshot((&self.blueprints, id), reads::resource_fetch).await
    }

    async fn resource_list(
        &self,
        filter: &ResourceFilter,
        page: Page<ResourceId>,
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
        self.read_snapshot((&self.blueprints, filter, page), reads::resource_list).await
    }

    async fn history_list(&self, id: ProvisionedResourceId) -> Result<Vec<HistoryLine>, Error> {
        self.read(id, reads::history_list).await
    }

    async fn deletion_fetch(&self, id: DeletionId) -> Result<Option<Deletion>, Error> {
        self.read(id, reads::deletion_fetch).await
    }

    async fn deletion_list(&self, page: Page<DeletionId>) -> Result<Listed<Deletion>, Error> {
        self.read(page, reads::deletion_list).await
    }

    async fn api_key_find(&self, short: &str) -> Result<Option<ApiKey>, Error> {
        self.read(short, keys::find).await
    }

    async fn api_key_put(&self, key: &ApiKey) -> Result<(), Error> {
        self.statement(key, keys::put).await
    }

    async fn api_key_count(&self) -> Result<u64, Error> {
        self.read((), keys::count).await
    }
}
