//! Placements of projects on management clusters.

use serde_json::json;
use slipway_core::ErrorKind;
use slipway_core::ids::{ClusterId, ProjectId};
use slipway_core::placement::cluster::{self, Cluster};
use slipway_core::placement::namespace::{NamespacePhase, NamespaceStatus};
use slipway_core::placement::rules::namespace::{self, PlacementDecision};
use slipway_core::placement::shared_objects::ProjectNamespace;
use slipway_core::precondition::Expected;

use crate::placement::port::Found;
use crate::ports::store::{Error, Page};
use crate::testing::world::{World, operator, refused};

/// Records this state of the project namespace as the placement loop would.
pub(super) async fn see(
    world: &World,
    project: ProjectId,
    phase: NamespacePhase,
    uid: Option<&str>,
) {
    let status =
        NamespaceStatus { namespace_uid: uid.map(str::to_owned), ..NamespaceStatus::default() };
    let plan = PlacementDecision { actions: Vec::new(), phase, status };
    let mut rule = |project_namespace: &ProjectNamespace| {
        Ok(namespace::record(project_namespace, &plan, &operator()))
    };
    world.store.placement.decide_project_namespace(project, &mut rule).await.expect("a decision");
}

pub(super) async fn withdraw(world: &World, project: &str) -> Result<(), Error> {
    let mut rule = |snapshot: &_| cluster::withdraw(snapshot, Expected::Any, &operator());
    world.store.placement.decide_cluster_assignment(project, None, &mut rule).await
}

async fn project_namespaces(world: &World, cluster: ClusterId) -> Vec<ProjectNamespace> {
    world.store.placement.project_namespace_list(cluster).await.expect("a list")
}

pub(super) async fn a_namespace_is_kept_and_cleared(world: &World) {
    let (cluster, elsewhere) = (world.fresh_name("cluster"), world.fresh_name("cluster"));
    let id = world.create_managed(&cluster, "eu").await.expect("a cluster");
    world.create_managed(&elsewhere, "eu").await.expect("a cluster");
    let project = world.fresh_name("project");
    let project_id = world.create_project(&project).await.expect("a project");
    assert!(project_namespaces(world, id).await.is_empty());
    let nowhere = world
        .store
        .placement
        .decide_project_namespace(project_id, &mut |_| unreachable!("no place"))
        .await;
    assert!(matches!(nowhere, Err(Error::NotFound { .. })), "{nowhere:?}");

    world.assignment(&project, &cluster).await.expect("a place");
    let [pending] = &project_namespaces(world, id).await[..] else { panic!("one lives there") };
    assert_eq!(pending.assignment.namespace_phase, NamespacePhase::Pending);
    assert!(!pending.is_leaving() && pending.uses.is_empty() && pending.resources == 0);
    world.assignment(&project, &elsewhere).await.expect("nothing was made yet");
    world.assignment(&project, &cluster).await.expect("nor there");

    see(world, project_id, NamespacePhase::Ready, Some("uid-1")).await;
    let fixed = world.assignment(&project, &elsewhere).await;
    assert_eq!(refused(fixed), ErrorKind::ClusterAssignmentImmutable, "its namespace stands");
    let [ready] = &project_namespaces(world, id).await[..] else { panic!("one lives there") };
    assert_eq!(ready.assignment.status.namespace_uid.as_deref(), Some("uid-1"));
    let revision = ready.assignment.revision;
    see(world, project_id, NamespacePhase::Ready, Some("uid-1")).await;
    assert_eq!(project_namespaces(world, id).await[0].assignment.revision, revision, "nothing new");

    withdraw(world, &project).await.expect("a withdrawal");
    withdraw(world, &project).await.expect("the same");
    let [leaving] = &project_namespaces(world, id).await[..] else { panic!("it is still there") };
    assert!(leaving.is_leaving());
    see(world, project_id, NamespacePhase::Terminating, Some("uid-1")).await;
    let fixed = world.assignment(&project, &cluster).await;
    assert_eq!(refused(fixed), ErrorKind::ClusterAssignmentImmutable, "it is leaving");
    see(world, project_id, NamespacePhase::Deleted, None).await;
    world.assignment(&project, &elsewhere).await.expect("the old place is cleared");
    assert!(project_namespaces(world, id).await.is_empty());
    world.store.placement.project_namespace_wake(project_id).await.expect("nobody waits");

    // The assignment of a deleted project is listed until its namespace is cleared.
    let listed = || async {
        let page = Page { after: None, limit: 10_000 };
        let assignments =
            world.store.placement.cluster_assignment_list(page).await.expect("a list");
        assignments.iter().any(|assignment| assignment.project_id == project_id)
    };
    see(world, project_id, NamespacePhase::Ready, Some("uid-2")).await;
    world.delete_project(&project).await.expect("nothing lives in it");
    see(world, project_id, NamespacePhase::Terminating, Some("uid-2")).await;
    assert!(listed().await);
    see(world, project_id, NamespacePhase::Deleted, None).await;
    assert!(!listed().await);
}

pub(super) async fn a_cluster_keeps_the_identity_that_it_showed_first(world: &World) {
    let name = world.fresh_name("cluster");
    let id = world.create_managed(&name, "eu").await.expect("a cluster");
    let found = |identity: &str, problem: Option<&str>| Found {
        identity: Some(identity.to_owned()),
        problem: problem.map(str::to_owned),
        facts: json!({ "kubernetes": "v1" }),
    };
    let verified = |found: Found| async move {
        world.store.placement.cluster_verified(id, &found).await.expect("a cluster")
    };
    assert!(verified(found("one", None)).await, "it is new");
    assert!(!verified(found("one", None)).await, "and known");
    assert!(verified(found("two", Some("another cluster"))).await);
    let cluster = world
        .store
        .kind::<Cluster>()
        .fetch(&name, false)
        .await
        .expect("a fetch")
        .expect("it is there");
    assert_eq!(cluster.substrate_uid.as_deref(), Some("one"));
    let problem = cluster.verification.expect("it was looked at").problem;
    assert_eq!(problem.as_deref(), Some("another cluster"));
    let unknown = ClusterId::new(world.uuid());
    let missing = world.store.placement.cluster_verified(unknown, &found("one", None)).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
}

pub(super) async fn a_region_offers_its_usable_clusters(world: &World) {
    let region = world.fresh_name("region");
    let project = world.fresh_name("project");
    world.create_project(&project).await.expect("a project");
    let mut clusters = Vec::new();
    for problem in [None, Some("no Crossplane".to_owned()), None] {
        let id = world.create_managed(&world.fresh_name("cluster"), &region).await.expect("one");
        let found = Found { identity: Some("x".to_owned()), problem, facts: json!({}) };
        world.store.placement.cluster_verified(id, &found).await.expect("it is there");
        clusters.push(id);
    }
    let offered = || async {
        world.store.placement.cluster_candidates(&region, &project).await.expect("candidates")
    };
    let candidates = offered().await;
    let usable = |id: ClusterId| candidates.iter().any(|one| one.id == id && one.usable);
    assert_eq!(clusters.iter().map(|id| usable(*id)).collect::<Vec<_>>(), [true, false, true]);
    let chosen = cluster::choose(&candidates).expect("one can be used");
    world.assignment(&project, &chosen.to_string()).await.expect("a place");
    assert_eq!(cluster::choose(&offered().await), Some(chosen), "it is home now");
    let other = *clusters.iter().find(|id| **id != chosen).expect("another");
    world.delete_cluster(&other.to_string()).await.expect("nothing is on it");
    assert!(offered().await.iter().all(|candidate| candidate.id != other), "it is deleted");
    assert!(
        world
            .store
            .placement
            .cluster_candidates("nowhere", &project)
            .await
            .expect("none")
            .is_empty()
    );
}
