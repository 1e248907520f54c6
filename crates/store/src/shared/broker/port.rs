//! Implements the port `BrokerStore`: resources, attempts and the claims of the loop.

use std::collections::HashSet;
use std::time::Duration;

use slipway_app::broker::port::{
    AttemptFilter, Claimed, Decided, DeclarationsRule, DeclareKey, DeclareRule, HistoryLine,
    HistoryTrimmed, OverduePartition, RedeclareKey, RedeclareRule, ReplaceRule,
    ResourceDeletionRule, ResourceFilter, ResourceKey, ResourceRule,
};
use slipway_app::ports::BrokerStore;
use slipway_app::ports::store::{CorruptRow, Error, Page};
use slipway_core::blocker::DeregistrationSeam;
use slipway_core::broker::history::HistoryBounds;
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Recorded, Release};
use slipway_core::deletion::door::DoorInput;
use slipway_core::ids::{Partition, ProjectId, ProvisionedResourceId, ResourceId};
use slipway_core::operations::explanation::{AttemptLine, PhaseCount};

use super::deletion::decide::AtTheDoor;
use super::{
    Backend, attempts, batch, claims, decide, declarations, declare, history, list, marks,
    partitions, reads, record,
};

port! {
    BrokerStore {
        statement attempt_claim(worker: &str, partition: Partition, limit: u32, lease: Duration)
            -> Vec<Claimed> = claims::claim;
        write attempt_quarantine(
            claimed: Claimed,
            reason: &str,
            seam: Option<DeregistrationSeam>,
            recheck: Duration,
        ) -> () = claims::quarantine;
        statement attempt_renew(worker: &str, claims: &[Claimed], lease: Duration)
            -> Vec<ProvisionedResourceId> = claims::renew;
        statement attempt_reclaim(worker: &str, partition: Partition) -> u64 = claims::reclaim;
        write attempt_wake(attempts: &[ProvisionedResourceId]) -> () = claims::wake;
        statement attempt_wake_all(partition: Partition) -> u64 = claims::wake_partition;
        read attempt_overdue(partition: Partition) -> Option<Duration> = claims::overdue;
        read partition_list_overdue() -> Vec<OverduePartition> = partitions::list_overdue;
        read attempt_staying(project: ProjectId, limit: u32)
            -> Vec<ProvisionedResourceId> = marks::staying;
        read partition_holders(partition: Partition) -> Vec<(String, u64)> = attempts::holders;
        write history_prune(keep: Duration, limit: u32) -> u64 = history::prune;
        read history_list(id: ProvisionedResourceId, page: Page<i64>)
            -> Vec<HistoryLine> = history::list;
        read_snapshot attempt_lines(filter: AttemptFilter, limit: u32)
            -> Vec<AttemptLine> = attempts::lines;
        read phase_counts(filter: AttemptFilter) -> Vec<PhaseCount> = attempts::counts;
    }
    by_hand {
        async fn decide_declaration(
            &self,
            key: &DeclareKey,
            rule: &mut DeclareRule<'_>,
        ) -> Result<(), Error> {
            self.decided(key, rule).await
        }

        async fn decide_declarations(
            &self,
            keys: &[DeclareKey],
            rule: &mut DeclarationsRule<'_>,
        ) -> Result<Vec<Result<(), Error>>, Error> {
            declarations::decide(self, keys, rule).await
        }

        async fn decide(&self, key: ResourceKey, rule: &mut ResourceRule<'_>) -> Result<(), Error> {
            self.decided(decide::ByKey { blueprints: &self.blueprints, key }, rule).await
        }

        async fn decide_deletion(
            &self,
            id: ResourceId,
            input: DoorInput,
            rule: &mut ResourceDeletionRule<'_>,
        ) -> Result<(), Error> {
            let of = decide::ByKey { blueprints: &self.blueprints, key: ResourceKey::Resource(id) };
            let subject = |snapshot: &ResourceSnapshot| Some(snapshot.resource.id.into());
            Box::pin(self.decided(AtTheDoor { of, subject, input }, rule)).await
        }

        async fn decide_redeclaration(
            &self,
            key: &RedeclareKey,
            rule: &mut RedeclareRule<'_>,
        ) -> Result<(), Error> {
            self.decided(declare::Corrected { blueprints: &self.blueprints, key }, rule).await
        }

        async fn decide_replacement(
            &self,
            key: &RedeclareKey,
            input: DoorInput,
            rule: &mut ReplaceRule<'_>,
        ) -> Result<(), Error> {
            let of = declare::Corrected { blueprints: &self.blueprints, key };
            let subject = |snapshot: &RedeclareSnapshot| Some(snapshot.resource.resource.id.into());
            Box::pin(self.decided(AtTheDoor { of, subject, input }, rule)).await
        }

        async fn history_trim(
            &self,
            kept: HistoryBounds,
            from: Option<ProvisionedResourceId>,
            limit: u32,
        ) -> Result<HistoryTrimmed, Error> {
            let (long, next) = self.read((kept, from, limit), history::long).await?;
            for id in long {
                let removed = self.write((kept, id, limit), history::trim).await?;
                if removed > 0 {
                    // There may be more of this one, so the next step begins with it.
                    return Ok(HistoryTrimmed { removed, next: Some(id) });
                }
            }
            Ok(HistoryTrimmed { removed: 0, next })
        }

        async fn decide_many(
            &self,
            attempts: &[ProvisionedResourceId],
            rule: &mut ResourceRule<'_>,
        ) -> Result<Vec<Decided>, Error> {
            batch::decide_many(self, attempts, rule).await
        }

        async fn attempt_load(
            &self,
            ids: &[ProvisionedResourceId],
        ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
            self.read_snapshot((&*self.blueprints, ids), reads::attempt_load).await
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

        async fn resource_fetch(&self, id: ResourceId) -> Result<Option<ResourceSnapshot>, Error> {
            self.read_snapshot((&*self.blueprints, id), reads::resource_fetch).await
        }

        async fn resource_named(
            &self,
            handles: &[(ProjectId, String)],
        ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
            self.read_snapshot((&*self.blueprints, handles), list::resource_named).await
        }

        async fn resource_load(
            &self,
            ids: &[ResourceId],
        ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
            self.read_snapshot((&*self.blueprints, ids), reads::resource_load).await
        }

        async fn resource_list(
            &self,
            filter: &ResourceFilter,
            page: Page<ResourceId>,
        ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
            self.read_snapshot((&*self.blueprints, filter, page), list::resource_list).await
        }
    }
}
