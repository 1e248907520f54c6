//! A cluster is changed or deleted while a pass of the placement loop works on it.

use std::sync::Arc;

use serde_json::json;
use slipway_core::ErrorKind;
use slipway_core::placement::cluster::{self, Cluster, ClusterAccess, ClusterChange};
use slipway_core::placement::definitions::{DefinitionPhase, Demand};
use slipway_core::placement::namespace::NamespacePhase;
use slipway_core::precondition::Expected;

use super::placement::{see, withdraw};
use crate::placement::port::Found;
use crate::ports::store::Error;
use crate::testing::races::at_once;
use crate::testing::world::{World, operator, refused};

/// What a pass writes about its cluster: the verification, then the definitions.
async fn pass(world: &World, demand: &Demand) -> Result<(), Error> {
    let found =
        Found { identity: Some("uid-1".to_owned()), problem: None, facts: json!({ "version": 1 }) };
    world.store.placement.cluster_verified(demand.cluster_id, &found).await?;
    world.record_definitions(demand, DefinitionPhase::Applying, None).await
}

async fn demanded(world: &World, named: &str) -> Demand {
    let cluster = world.create_managed(named, "eu").await.expect("a cluster");
    let (slug, blueprint) = world.installable().await;
    world.publish_installed(&slug, "v1", true).await;
    world.demand(cluster, blueprint).await.expect("it is to be there")
}

async fn delete(world: &World, named: &str) -> Result<(), Error> {
    world.delete_cluster(named).await.map(drop)
}

/// The cluster goes as a whole, and no pass that was under way writes of it again.
pub(super) async fn delete_with_a_pass(world: &Arc<World>) {
    let named = world.fresh_name("cluster");
    let demand = demanded(world, &named).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (of_pass, of_delete) = (demand.clone(), named.clone());
    let (passed, deleted) =
        at_once(
            async move { pass(&a, &of_pass).await },
            async move { delete(&b, &of_delete).await },
        )
        .await;
    deleted.expect("nothing is placed on it");
    assert!(matches!(passed, Ok(()) | Err(Error::NotFound { .. })), "{passed:?}");
    let late = pass(world, &demand).await;
    assert!(matches!(late, Err(Error::NotFound { .. })), "{late:?}");
    let late = world.record_definitions(&demand, DefinitionPhase::Established, None).await;
    assert!(matches!(late, Err(Error::NotFound { .. })), "{late:?}");
    let left = world.demand(demand.cluster_id, demand.blueprint_id).await;
    assert_eq!(left.and_then(|demand| demand.definitions), None);
    assert_eq!(refused(delete(world, &named).await), ErrorKind::ClusterNotFound);
}

/// Both are written, whichever is first.
pub(super) async fn update_with_a_pass(world: &Arc<World>) {
    let named = world.fresh_name("cluster");
    let demand = demanded(world, &named).await;
    let access = Some(ClusterAccess::parse("kubeconfig/west").expect("an access"));
    let change = ClusterChange { region: None, access: access.clone(), namespace_prefix: None };
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (of_pass, of_update) = (demand.clone(), named.clone());
    let (passed, updated) = at_once(async move { pass(&a, &of_pass).await }, async move {
        let mut rule =
            |snapshot: &_| cluster::update(snapshot, &change, Expected::Any, &operator());
        b.store.kind::<Cluster>().decide(&of_update, &mut rule).await
    })
    .await;
    passed.expect("a pass");
    updated.expect("a change");
    let found = world.store.kind::<Cluster>().fetch(&named, false).await.expect("a fetch");
    let found = found.expect("the cluster is there");
    assert_eq!((found.access, found.revision.0), (access, 3));
    assert_eq!(found.substrate_uid.as_deref(), Some("uid-1"));
    assert!(found.verification.is_some());
    let installed = world.demand(demand.cluster_id, demand.blueprint_id).await;
    assert!(installed.is_some_and(|demand| demand.definitions.is_some()));
}

/// A project that leaves is recorded as gone, or keeps its cluster.
pub(super) async fn delete_with_the_end_of_a_namespace(world: &Arc<World>) {
    let (named, project) = (world.fresh_name("cluster"), world.fresh_name("project"));
    world.create_managed(&named, "eu").await.expect("a cluster");
    let id = world.create_project(&project).await.expect("a project");
    world.assignment(&project, &named).await.expect("a place");
    see(world, id, NamespacePhase::Ready, Some("uid-1")).await;
    withdraw(world, &project).await.expect("a withdrawal");
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let of_delete = named.clone();
    let ((), deleted) =
        at_once(async move { see(&a, id, NamespacePhase::Deleted, None).await }, async move {
            delete(&b, &of_delete).await
        })
        .await;
    if deleted.is_err() {
        assert_eq!(refused(deleted), ErrorKind::ClusterInUse);
        delete(world, &named).await.expect("the project left");
    }
    let left = world.store.placement.cluster_assignment_fetch(id).await.expect("a fetch");
    assert_eq!(left.map(|left| left.namespace_phase), Some(NamespacePhase::Deleted));
}
