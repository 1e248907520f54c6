//! Implements the port `PlacementStore`: clusters, placements and definitions.

use slipway_app::placement::port::{ClusterIdentity, DemandRule, Found, ProjectNamespaceRule};
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_app::ports::{Listed, PlacementStore};
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::ids::{BlueprintId, ClusterId, ProjectId};
use slipway_core::placement::cluster::{Candidate, ClusterAssignment, ClusterAssignmentSnapshot};
use slipway_core::placement::definitions::{DefinitionsView, Demand};
use slipway_core::placement::shared_objects::ProjectNamespace;

use super::broker::claims;
use super::{Backend, cluster, definitions, namespace};

port! {
    PlacementStore {
        read cluster_list() -> Vec<ClusterIdentity> = cluster::identities;
        read cluster_candidates(region: &str, project: &str)
            -> Vec<Candidate> = namespace::candidates;
        read cluster_kinds(cluster: ClusterId) -> Vec<CompositeType> = namespace::kinds;
        write cluster_verified(cluster: ClusterId, found: &Found) -> bool = namespace::verified;
        read cluster_assignment_fetch(project: ProjectId)
            -> Option<ClusterAssignment> = cluster::assignment_fetch;
        read cluster_assignments_of(projects: &[ProjectId])
            -> Vec<ClusterAssignment> = cluster::assignments_of;
        read cluster_assignment_list(page: Page<ProjectId>)
            -> Listed<ClusterAssignment> = cluster::assignment_list;
        read project_namespace_list(cluster: ClusterId) -> Vec<ProjectNamespace> = namespace::list;
        statement project_namespace_wake(project: ProjectId) -> () = claims::wake_project;
        read demand_list(cluster: ClusterId) -> Vec<Demand> = definitions::demands;
        read definitions_list(blueprint: BlueprintId, page: Page<ClusterId>)
            -> Listed<DefinitionsView> = definitions::list;
    }
    by_hand {
        async fn decide_cluster_assignment(
            &self,
            project: &str,
            cluster: Option<&str>,
            rule: &mut Rule<'_, ClusterAssignmentSnapshot>,
        ) -> Result<(), Error> {
            self.decided(cluster::PlacementOf { project, cluster }, rule).await
        }

        async fn decide_project_namespace(
            &self,
            project: ProjectId,
            rule: &mut ProjectNamespaceRule<'_>,
        ) -> Result<(), Error> {
            self.decided(namespace::PlacementOf(project), rule).await
        }

        async fn decide_definitions(
            &self,
            cluster: ClusterId,
            blueprint: BlueprintId,
            rule: &mut DemandRule<'_>,
        ) -> Result<(), Error> {
            self.decided(definitions::DemandOf { cluster, blueprint }, rule).await
        }
    }
}
