//! The fleet's part of the fated store: handed on. The crash matrix has no
//! management cluster.

use async_trait::async_trait;
use slipway_app::ports::FleetStore;
use slipway_app::ports::fleet::{Found, TenancyRule};
use slipway_app::ports::store::Error;
use slipway_core::blueprint::CompositeType;
use slipway_core::fleet::Tenancy;
use slipway_core::ids::{ClusterId, ProjectId};
use slipway_core::rules::catalog::placement::Candidate;

use super::store::FatedStore;

#[async_trait]
impl FleetStore for FatedStore {
    async fn cluster_candidates(
        &self,
        region: &str,
        project: &str,
    ) -> Result<Vec<Candidate>, Error> {
        self.fate.alive().await;
        self.inner.cluster_candidates(region, project).await
    }

    async fn tenancy_list(&self, cluster: ClusterId) -> Result<Vec<Tenancy>, Error> {
        self.fate.alive().await;
        self.inner.tenancy_list(cluster).await
    }

    async fn decide_tenancy(
        &self,
        project: ProjectId,
        rule: &mut TenancyRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.decide_tenancy(project, rule).await
    }

    async fn cluster_kinds(&self, cluster: ClusterId) -> Result<Vec<CompositeType>, Error> {
        self.fate.alive().await;
        self.inner.cluster_kinds(cluster).await
    }

    async fn tenancy_wake(&self, project: ProjectId) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.tenancy_wake(project).await
    }

    async fn cluster_verified(&self, cluster: ClusterId, found: &Found) -> Result<bool, Error> {
        self.fate.alive().await;
        self.inner.cluster_verified(cluster, found).await
    }
}
