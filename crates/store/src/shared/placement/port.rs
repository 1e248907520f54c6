//! Implements the port `PlacementStore`: clusters, placements and definitions.

use async_trait::async_trait;
use slipway_app::placement::port::{ClusterIdentity, DemandRule, Found, ProjectNamespaceRule};
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_app::ports::{Listed, PlacementStore};
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::ids::{BlueprintId, ClusterId, ProjectId};
use slipway_core::placement::cluster::ClusterAssignment;
use slipway_core::placement::definitions::{DefinitionsView, Demand};
use slipway_core::placement::rules::cluster_assignment::ClusterAssignmentSnapshot;
use slipway_core::placement::rules::cluster_choice::Candidate;
use slipway_core::placement::shared_objects::ProjectNamespace;

use super::broker::claims;
use super::{Backend, cluster, definitions, namespace};

#[async_trait]
impl PlacementStore for Backend {
    async fn cluster_list(&self) -> Result<Vec<ClusterIdentity>, Error> {
        self.read((), cluster::identities).await
    }

    async fn cluster_candidates(
        &self,
        region: &str,
        project: &str,
    ) -> Result<Vec<Candidate>, Error> {
        self.read((region, project), namespace::candidates).await
    }

    async fn cluster_kinds(&self, cluster: ClusterId) -> Result<Vec<CompositeType>, Error> {
        self.read(cluster, namespace::kinds).await
    }

    async fn cluster_verified(&self, cluster: ClusterId, found: &Found) -> Result<bool, Error> {
        self.write((cluster, found), namespace::verified).await
    }

    async fn decide_cluster_assignment(
        &self,
        project: &str,
        cluster: Option<&str>,
        rule: &mut Rule<'_, ClusterAssignmentSnapshot>,
    ) -> Result<(), Error> {
        self.decided(cluster::PlacementOf { project, cluster }, rule).await
    }

    async fn cluster_assignment_fetch(
        &self,
        project: ProjectId,
    ) -> Result<Option<ClusterAssignment>, Error> {
        self.read(project, cluster::assignment_fetch).await
    }

    async fn cluster_assignment_list(
        &self,
        page: Page<ProjectId>,
    ) -> Result<Listed<ClusterAssignment>, Error> {
        self.read(page, cluster::assignment_list).await
    }

    async fn project_namespace_list(
        &self,
        cluster: ClusterId,
    ) -> Result<Vec<ProjectNamespace>, Error> {
        self.read(cluster, namespace::list).await
    }

    async fn decide_project_namespace(
        &self,
        project: ProjectId,
        rule: &mut ProjectNamespaceRule<'_>,
    ) -> Result<(), Error> {
        self.decided(namespace::PlacementOf(project), rule).await
    }

    async fn project_namespace_wake(&self, project: ProjectId) -> Result<(), Error> {
        self.statement(project, claims::wake_project).await
    }

    async fn demand_list(&self, cluster: ClusterId) -> Result<Vec<Demand>, Error> {
        self.read(cluster, definitions::demands).await
    }

    async fn decide_definitions(
        &self,
        cluster: ClusterId,
        blueprint: BlueprintId,
        rule: &mut DemandRule<'_>,
    ) -> Result<(), Error> {
        self.decided(definitions::DemandOf { cluster, blueprint }, rule).await
    }

    async fn definitions_list(
        &self,
        blueprint: BlueprintId,
        page: Page<ClusterId>,
    ) -> Result<Listed<DefinitionsView>, Error> {
        self.read((blueprint, page), definitions::list).await
    }
}
