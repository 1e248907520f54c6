//! The store of the room placement: management clusters, which project lives on
//! which of them, what it needs there, and the definitions that a cluster is to
//! know.

use serde_json::Value;
use slipway_core::blueprint::{CompositeType, Engine};
use slipway_core::catalog;
use slipway_core::catalog::cluster::ClusterAssignment;
use slipway_core::catalog::snapshot::{ClusterAssignmentSnapshot, ClusterSnapshot};
use slipway_core::definitions::{DefinitionsView, Demand};
use slipway_core::ids::{BlueprintId, ClusterId, ProjectId};
use slipway_core::rules::catalog::cluster_choice::Candidate;
use slipway_core::shared_objects::ProjectNamespace;

use super::listed::Listed;
use super::store::{Error, Page, Rule};

/// A cluster or root, as it was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub id: ClusterId,
    pub name: String,
    pub engine: Engine,
    pub substrate_uid: Option<String>,
}

/// What a look at a cluster found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The identity that the cluster showed, if it did.
    pub identity: Option<String>,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
    pub facts: Value,
}

/// A pure function that is called inside the transaction, maybe twice.
pub type ProjectNamespaceRule<'a> = Rule<'a, ProjectNamespace>;

/// A pure function that is called inside the transaction, maybe twice.
pub type DemandRule<'a> = Rule<'a, Demand>;

port! {
/// What the application asks of clusters and placements.
pub trait PlacementStore, intercepted by PlacementIntercept {
    /// The cluster of this reference, locked.
    async fn decide_cluster(
        &self,
        reference: &str,
        rule: &mut Rule<'_, ClusterSnapshot>,
    ) -> Result<(), Error>;

    async fn cluster_fetch(&self, reference: &str) -> Result<Option<catalog::cluster::Cluster>, Error>;

    async fn cluster_page(&self, page: Page<ClusterId>) -> Result<Listed<catalog::cluster::Cluster>, Error>;

    /// Every cluster and root that is registered.
    async fn cluster_list(&self) -> Result<Vec<Cluster>, Error>;

    /// The clusters of a region, and whether this project (name or id) is there.
    async fn cluster_candidates(
        &self,
        region: &str,
        project: &str,
    ) -> Result<Vec<Candidate>, Error>;

    /// The kinds of composites that anything was ever made of on this cluster,
    /// as far as rows remember.
    async fn cluster_kinds(&self, cluster: ClusterId) -> Result<Vec<CompositeType>, Error>;

    /// Writes down what was found on a cluster, if it is something else than
    /// before. The first identity that a cluster shows is its own from then on;
    /// another one later is not taken over. Says whether anything was written.
    async fn cluster_verified(&self, cluster: ClusterId, found: &Found) -> Result<bool, Error>;

    /// The live project, locked as a declaration locks it, its place, and the
    /// cluster that is named, locked for share.
    async fn decide_cluster_assignment(
        &self,
        project: &str,
        cluster: Option<&str>,
        rule: &mut Rule<'_, ClusterAssignmentSnapshot>,
    ) -> Result<(), Error>;

    async fn cluster_assignment_fetch(
        &self,
        project: ProjectId,
    ) -> Result<Option<ClusterAssignment>, Error>;

    /// Of live projects, in the order of their ids.
    async fn cluster_assignment_list(
        &self,
        page: Page<ProjectId>,
    ) -> Result<Listed<ClusterAssignment>, Error>;

    /// Every project that is placed on this cluster, deleted ones too until
    /// their place is cleared, by a few statements for all of them.
    async fn project_namespace_list(&self, cluster: ClusterId) -> Result<Vec<ProjectNamespace>, Error>;

    /// Decides about a project's place, with the project and its assignment
    /// locked as declarations lock them. `NotFound` if it has none.
    async fn decide_project_namespace(
        &self,
        project: ProjectId,
        rule: &mut ProjectNamespaceRule<'_>,
    ) -> Result<(), Error>;

    /// Makes everything of this project due that waits for its place.
    async fn project_namespace_wake(&self, project: ProjectId) -> Result<(), Error>;

    /// The blueprints that are to be delivered, each in its newest version that
    /// is to be and is not retired, with how far it is on this cluster. Two
    /// statements for all of them.
    async fn demand_list(&self, cluster: ClusterId) -> Result<Vec<Demand>, Error>;

    /// Decides about one of them, with the blueprint locked as publications and
    /// retirements lock it. `NotFound` if nothing of it is to be delivered.
    async fn decide_definitions(
        &self,
        cluster: ClusterId,
        blueprint: BlueprintId,
        rule: &mut DemandRule<'_>,
    ) -> Result<(), Error>;

    /// The clusters that a blueprint is to be on, or was brought to.
    async fn definitions_list(
        &self,
        blueprint: BlueprintId,
        page: Page<ClusterId>,
    ) -> Result<Listed<DefinitionsView>, Error>;
}
}
