//! Implements the port `DeletionStore`: records of removals, and leaks.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::deletion::port::{LeakFilter, LeakRule, RecordedFindings, ReportedFinding};
use slipway_app::placement::port::ClusterIdentity;
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{DeletionStore, Listed};
use slipway_core::Timestamp;
use slipway_core::access::audit::Actor;
use slipway_core::deletion::leak::{Claimant, Leak};
use slipway_core::deletion::record::Deletion;
use slipway_core::ids::{ClusterId, DeletionId, LeakRecordId, ProjectId, ProvisionedResourceId};

use super::broker::claimants;
use super::{Backend, leak_rows, leaks, reads};

#[async_trait]
impl DeletionStore for Backend {
    async fn deletion_fetch(&self, id: DeletionId) -> Result<Option<Deletion>, Error> {
        self.read(id, reads::fetch).await
    }

    async fn deletion_list(&self, page: Page<DeletionId>) -> Result<Listed<Deletion>, Error> {
        self.read(page, reads::list).await
    }

    async fn deletion_list_in(
        &self,
        project: ProjectId,
        page: Page<DeletionId>,
    ) -> Result<Listed<Deletion>, Error> {
        self.read((project, page), reads::list_in).await
    }

    async fn claimant_load(
        &self,
        attempts: &[ProvisionedResourceId],
    ) -> Result<Vec<Claimant>, Error> {
        self.read(attempts, claimants::load).await
    }

    async fn claimant_expecting(
        &self,
        cluster: ClusterId,
        page: Page<ProvisionedResourceId>,
    ) -> Result<Vec<Claimant>, Error> {
        self.read((cluster, page), claimants::expecting).await
    }

    async fn leak_scan_begin(&self) -> Result<Timestamp, Error> {
        self.read((), leak_rows::now).await
    }

    async fn leak_findings_record(
        &self,
        cluster: &ClusterIdentity,
        reported: &[ReportedFinding],
        apart: Duration,
    ) -> Result<RecordedFindings, Error> {
        self.write((cluster, reported, apart), leaks::reported).await
    }

    async fn leak_scan_end(
        &self,
        cluster: ClusterId,
        begun_at: Timestamp,
        actor: &Actor,
    ) -> Result<u64, Error> {
        self.write((cluster, begun_at, actor), leaks::scan_end).await
    }

    async fn leak_removals(&self, cluster: ClusterId, limit: u32) -> Result<Vec<Leak>, Error> {
        self.read((cluster, limit), leak_rows::removals).await
    }

    async fn leak_list(
        &self,
        filter: &LeakFilter,
        page: Page<LeakRecordId>,
    ) -> Result<Vec<Leak>, Error> {
        self.read((filter, page), leak_rows::list).await
    }

    async fn leak_fetch(&self, id: LeakRecordId) -> Result<Option<Leak>, Error> {
        self.read(id, leak_rows::fetch).await
    }

    async fn leak_decide(&self, id: LeakRecordId, rule: &mut LeakRule<'_>) -> Result<(), Error> {
        self.decided(leaks::ById(id), rule).await
    }

    async fn leak_open_counts(&self) -> Result<BTreeMap<String, u64>, Error> {
        self.read((), leak_rows::open_counts).await
    }
}
