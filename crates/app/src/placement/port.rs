//! The store of the placement domain: management clusters, the placement of
//! projects on them, what a project needs there, and the definitions that a
//! cluster must have.

use serde_json::Value;
use slipway_core::catalog::blueprint_version::{CompositeType, Engine};
use slipway_core::ids::{BlueprintId, ClusterId, ProjectId};
use slipway_core::placement::cluster::{
    Candidate, Cluster, ClusterAssignment, ClusterAssignmentSnapshot,
};
use slipway_core::placement::definitions::{DefinitionsView, Demand};
use slipway_core::placement::shared_objects::ProjectNamespace;

use crate::ports::listed::Listed;
use crate::ports::store::{Error, Page, Rule};

/// Which cluster or root a row names: enough to find it and to prove that it is
/// the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterIdentity {
    pub id: ClusterId,
    pub name: String,
    pub engine: Engine,
    pub substrate_uid: Option<String>,
}

/// The result of verifying a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The identity of the cluster, if it could be read.
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
/// Everything about clusters and placements.
pub trait PlacementStore of (Cluster), intercepted by PlacementIntercept {
    /// Every cluster and root that is registered.
    async fn cluster_list(&self) -> Result<Vec<ClusterIdentity>, Error>;

    /// The clusters of a region, and whether this project (name or id) is placed there.
    async fn cluster_candidates(
        &self,
        region: &str,
        project: &str,
    ) -> Result<Vec<Candidate>, Error>;

    /// The kinds of all composites ever made on this cluster, as far as rows remember.
    async fn cluster_kinds(&self, cluster: ClusterId) -> Result<Vec<CompositeType>, Error>;

    /// Records what was found on a cluster, if it changed. The first identity
    /// that a cluster shows is recorded for good; a different one later does
    /// not replace it. Returns whether anything was written.
    async fn cluster_verified(&self, cluster: ClusterId, found: &Found) -> Result<bool, Error>;

    /// The live project, locked as a declaration locks it, its placement, and
    /// the named cluster, locked for share.
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

    /// The placements of these projects.
    async fn cluster_assignments_of(
        &self,
        projects: &[ProjectId],
    ) -> Result<Vec<ClusterAssignment>, Error>;

    /// Of live projects, in the order of their ids.
    async fn cluster_assignment_list(
        &self,
        page: Page<ProjectId>,
    ) -> Result<Listed<ClusterAssignment>, Error>;

    /// Every project placed on this cluster, with a few statements for all of
    /// them. Includes deleted projects until their namespace is cleared.
    async fn project_namespace_list(&self, cluster: ClusterId) -> Result<Vec<ProjectNamespace>, Error>;

    /// Decides about the placement of a project, with the project and its
    /// assignment locked as declarations lock them. `NotFound` if it has none.
    async fn decide_project_namespace(
        &self,
        project: ProjectId,
        rule: &mut ProjectNamespaceRule<'_>,
    ) -> Result<(), Error>;

    /// Makes every resource of this project due that waits for its placement.
    async fn project_namespace_wake(&self, project: ProjectId) -> Result<(), Error>;

    /// The blueprints whose definitions must be installed, each in its newest
    /// such version that is not retired, with its state on this cluster. Two
    /// statements for all of them.
    async fn demand_list(&self, cluster: ClusterId) -> Result<Vec<Demand>, Error>;

    /// Decides about one of them, with the blueprint locked as publications and
    /// retirements lock it. `NotFound` if no version of it must be installed.
    async fn decide_definitions(
        &self,
        cluster: ClusterId,
        blueprint: BlueprintId,
        rule: &mut DemandRule<'_>,
    ) -> Result<(), Error>;

    /// The clusters that need the definitions of a blueprint, or have them.
    async fn definitions_list(
        &self,
        blueprint: BlueprintId,
        page: Page<ClusterId>,
    ) -> Result<Listed<DefinitionsView>, Error>;
}
}
