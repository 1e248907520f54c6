//! Implements the port `BrokerStore`: resources, attempts and the claims of the loop.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::broker::port::{
    AttemptFilter, Claimed, Decided, DeclareKey, DeclareRule, HistoryLine, OverduePartition,
    ResourceFilter, ResourceKey, ResourceRule,
};
use slipway_app::ports::BrokerStore;
use slipway_app::ports::store::{CorruptRow, Error, Page};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Recorded, Release};
use slipway_core::ids::{Partition, ProvisionedResourceId, ResourceId};
use slipway_core::operations::explanation::{AttemptLine, PhaseCount};

use super::{
    Backend, attempts, batch, claims, decide, history, list, partitions, reads, record, retention,
};

#[async_trait]
impl BrokerStore for Backend {
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
        partition: Partition,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<Claimed>, Error> {
        self.statement((worker, partition, limit, lease), claims::claim).await
    }

    async fn attempt_load(
        &self,
        ids: &[ProvisionedResourceId],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
        self.read_snapshot((&self.blueprints, ids), reads::attempt_load).await
    }

    async fn attempt_record(
        &self,
        records: &[Recorded],
    ) -> Result<HashSet<ProvisionedResourceId>, Error> {
        match record::record(self, records).await {
            Ok(recorded) => Ok(recorded),
            // Nothing was written; the caller decides row by row under lock,
            // which finds the bad one.
            Err(failure) if failure.may_be_of_one_row() => {
                tracing::debug!(?failure, rows = records.len(), "records failed together");
                Ok(HashSet::new())
            }
            Err(failure) => Err(failure.into()),
        }
    }

    async fn attempt_release(&self, releases: &[Release]) -> Result<(), Error> {
        self.statement(releases, claims::release).await.map(|_| ())
    }

    async fn attempt_quarantine(
        &self,
        claimed: Claimed,
        reason: &str,
        recheck: Duration,
    ) -> Result<(), Error> {
        self.write((claimed, reason, recheck), claims::quarantine).await
    }

    async fn attempt_renew(
        &self,
        worker: &str,
        claims: &[Claimed],
        lease: Duration,
    ) -> Result<Vec<ProvisionedResourceId>, Error> {
        self.statement((worker, claims, lease), claims::renew).await
    }

    async fn attempt_reclaim(&self, worker: &str) -> Result<u64, Error> {
        self.statement(worker, claims::reclaim).await
    }

    async fn attempt_wake(&self, attempts: &[ProvisionedResourceId]) -> Result<(), Error> {
        self.write(attempts, claims::wake).await
    }

    async fn attempt_wake_all(&self, partition: Partition) -> Result<u64, Error> {
        self.statement(partition, claims::wake_partition).await
    }

    async fn attempt_overdue(&self, partition: Partition) -> Result<Option<Duration>, Error> {
        self.read(partition, claims::overdue).await
    }

    async fn partition_list_overdue(&self) -> Result<Vec<OverduePartition>, Error> {
        self.read((), partitions::list_overdue).await
    }

    async fn partition_holders(&self, partition: Partition) -> Result<Vec<(String, u64)>, Error> {
        self.read(partition, attempts::holders).await
    }

    async fn resource_fetch(&self, id: ResourceId) -> Result<Option<ResourceSnapshot>, Error> {
        self.read_snapshot((&self.blueprints, id), reads::resource_fetch).await
    }

    async fn resource_list(
        &self,
        filter: &ResourceFilter,
        page: Page<ResourceId>,
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
        self.read_snapshot((&self.blueprints, filter, page), list::resource_list).await
    }

    async fn history_list(&self, id: ProvisionedResourceId) -> Result<Vec<HistoryLine>, Error> {
        self.read(id, history::list).await
    }

    async fn history_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error> {
        self.statement((keep, limit), retention::prune_history).await
    }

    async fn attempt_lines(
        &self,
        filter: AttemptFilter,
        limit: u32,
    ) -> Result<Vec<AttemptLine>, Error> {
        self.read_snapshot((filter, limit), attempts::lines).await
    }

    async fn phase_counts(&self, filter: AttemptFilter) -> Result<Vec<PhaseCount>, Error> {
        self.read(filter, attempts::counts).await
    }
}
