//! Clusters, the projects placed on them, and resource filters.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::ErrorKind;
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::update;
use slipway_core::catalog::label::LabelSelector;
use slipway_core::catalog::project::{self, Project, ProjectChange};
use slipway_core::commit::{Commit, Write};
use slipway_core::ids::Revision;
use slipway_core::placement::cluster::{
    self, Cluster, ClusterAccess, ClusterAssignment, ClusterChange, NamespacePrefix,
};
use slipway_core::placement::namespace::NamespacePhase;
use slipway_core::placement::shared_objects::ProjectNamespace;
use slipway_core::placement::{PlacementWrite, abandon};
use slipway_core::precondition::Expected;
use slipway_core::text::{Labels, Reason};

use crate::broker::port::{Blocked, ResourceFilter, ResourceKey};
use crate::deletion::port::LeakFilter;
use crate::placement::port::Found;
use crate::ports::store::{Error, Page};
use crate::seed::Seed;
use crate::testing::world::{World, operator, refused};

async fn phase_of(world: &World, project: &str) -> NamespacePhase {
    let found = world.store.kind::<Project>().fetch(project, false).await.expect("a fetch");
    let id = found.expect("the project is there").id;
    let assignment = world.store.placement.cluster_assignment_fetch(id).await.expect("a fetch");
    assignment.expect("the project is placed").namespace_phase
}

pub(super) async fn a_project_moves_only_while_it_is_empty(world: &World) {
    let cluster = world.fresh_name("cluster");
    let id = world.create_cluster(&cluster).await.expect("a cluster");
    assert_eq!(refused(world.create_cluster(&cluster).await), ErrorKind::NameTaken);
    let (project, _) = world.furnished().await;
    assert_eq!(phase_of(world, &project).await, NamespacePhase::Ready, "it is served");
    world.assignment(&project, &cluster).await.expect("an empty project moves");
    assert_eq!(phase_of(world, &project).await, NamespacePhase::Pending, "nobody serves it");
    let nowhere = world.assignment(&project, "nowhere").await;
    assert_eq!(refused(nowhere), ErrorKind::ClusterNotFound);

    let declared = world.declare_in(&project).await.expect("a declaration");
    assert_eq!(world.snapshot(declared.attempt).await.attempt.partition(), id.into());
    let fixed = world.assignment(&project, "local").await;
    assert_eq!(refused(fixed), ErrorKind::ClusterAssignmentImmutable);
    world.assignment(&project, &cluster).await.expect("where it is already");
    let mut withdraw = |snapshot: &_| cluster::withdraw(snapshot, Expected::Any, &operator());
    let fixed =
        world.store.placement.decide_cluster_assignment(&project, None, &mut withdraw).await;
    assert_eq!(refused(fixed), ErrorKind::ClusterAssignmentImmutable);
}

/// A project whose resources were abandoned leaves its cluster; its namespace there, which
/// nobody can prove gone, becomes a leak record, and the project is placed again.
pub(super) async fn a_lost_cluster_lets_its_project_go(world: &World) {
    let named = world.fresh_name("cluster");
    let cluster_id = world.create_cluster(&named).await.expect("a cluster");
    let (project, _) = world.furnished_on(&named).await;
    let declared = world.declare_in(&project).await.expect("a declaration");
    world.delete(declared.resource).await.expect("a deletion");
    let unknown = CompositeReport::Unknown { reason: "the cluster is away".to_owned() };
    let claimed = world.claim_now(declared.attempt).await;
    world.tick_seeing(claimed, &unknown).await.expect("a tick");
    let project_id = world.snapshot(declared.attempt).await.resource.project_id;
    let placement = &world.store.placement;
    let mut made = |placed: &ProjectNamespace| {
        let namespace_phase = NamespacePhase::Degraded;
        let made = ClusterAssignment { namespace_phase, ..placed.assignment.clone() };
        let writes = vec![PlacementWrite::ClusterAssignmentUpdate(made).into()];
        Ok(Commit { writes, ..Commit::default() })
    };
    placement.decide_project_namespace(project_id, &mut made).await.expect("a record");
    let found = Found {
        identity: None,
        problem: Some("connection refused".to_owned()),
        facts: serde_json::Value::Null,
    };
    placement.cluster_verified(cluster_id, &found).await.expect("a record");

    let mut withdraw = |snapshot: &_| cluster::withdraw(snapshot, Expected::Any, &operator());
    let owner = placement.decide_cluster_assignment(&project, None, &mut withdraw).await;
    assert_eq!(refused(owner), ErrorKind::ClusterAssignmentImmutable);
    let lost = world.store.kind::<Cluster>().fetch(&named, false).await.expect("a fetch");
    let owner = world.store.kind::<Project>().fetch(&project, false).await.expect("a fetch");
    let (lost, owner) = (lost.expect("the cluster"), owner.expect("the project"));
    let reason = Reason::parse("the suite lost the cluster").expect("a valid reason");
    let known = abandon::Circumstances {
        project: &owner,
        cluster: &lost,
        unusable_for: Duration::ZERO,
        deadline: Duration::from_secs(1_800),
    };
    let request = abandon::Request { reason: &reason, confirm: &project };
    let give_up = async || {
        let mut rule =
            |placed: &ProjectNamespace| abandon::request(placed, request, known, &operator());
        placement.decide_project_namespace(project_id, &mut rule).await
    };
    assert_eq!(refused(give_up().await), ErrorKind::NotAbandonable, "nobody withdrew it");
    world.abandon(declared).await.expect("it is abandoned");
    placement.decide_cluster_assignment(&project, None, &mut withdraw).await.expect("it leaves");
    let waits = world.assignment(&project, "local").await;
    assert_eq!(refused(waits), ErrorKind::ClusterAssignmentImmutable, "its namespace is there");
    give_up().await.expect("it is abandoned");
    assert!(matches!(give_up().await, Err(Error::NotFound { .. })), "it is placed nowhere");

    let kind = Some("abandoned_namespace".to_owned());
    let filter = LeakFilter { open: Some(true), kind };
    let page = Page { after: None, limit: 1_000 };
    let leaks = world.store.deletion.leak_list(&filter, page).await.expect("a list");
    let leaks: Vec<_> = leaks.iter().filter(|leak| leak.subject == project_id.into()).collect();
    let [leak] = leaks[..] else { panic!("{leaks:?}") };
    assert_eq!((leak.cluster_id, leak.cluster.as_deref()), (Some(cluster_id), Some(&*named)));
    world.assignment(&project, "local").await.expect("it is placed again");
    world.declare_in(&project).await.expect("a declaration");
}

/// A cluster registered before its process starts is adopted by that process.
pub(super) async fn a_cluster_is_taken_on_by_who_serves_it(world: &World) {
    let cluster = world.fresh_name("cluster");
    let id = world.create_cluster(&cluster).await.expect("a cluster");
    let (project, _) = world.furnished().await;
    world.assignment(&project, &cluster).await.expect("an empty project moves");
    let seed = Seed {
        cluster: cluster.clone(),
        substrate_uid: "root-of-another".to_owned(),
        ..world.mk_seed()
    };
    assert_eq!(
        world.store.operations.seed(&seed).await.expect("a seed"),
        id,
        "it is the same cluster"
    );
    let served = world
        .store
        .kind::<Cluster>()
        .fetch(&cluster, false)
        .await
        .expect("a fetch")
        .expect("a cluster");
    assert_eq!(served.substrate_uid.as_deref(), Some("root-of-another"));
    assert_eq!(phase_of(world, &project).await, NamespacePhase::Ready);

    let impostor = Seed { substrate_uid: "root-of-an-impostor".to_owned(), ..seed };
    world.store.operations.seed(&impostor).await.expect("a seed");
    let same = world
        .store
        .kind::<Cluster>()
        .fetch(&cluster, false)
        .await
        .expect("a fetch")
        .expect("a cluster");
    assert_eq!(same, served, "an identity is given once");
}

/// A managed cluster is changed and deleted; with a project on it, or with the project's
/// attempt, it stays.
pub(super) async fn a_cluster_is_changed_and_deleted_while_nothing_is_on_it(world: &World) {
    let name = world.fresh_name("cluster");
    world.create_managed(&name, "eu").await.expect("a cluster");
    let clusters = world.store.kind::<Cluster>();
    let change = ClusterChange {
        region: Some(None),
        access: Some(ClusterAccess::parse("kubeconfig/west").expect("an access")),
        namespace_prefix: Some(NamespacePrefix::parse("west-").expect("a prefix")),
    };
    let mut update = |snapshot: &_| cluster::update(snapshot, &change, Expected::Any, &operator());
    clusters.decide(&name, &mut update).await.expect("a change");
    let found = clusters.fetch(&name, false).await.expect("a fetch").expect("a cluster");
    assert_eq!((found.region, found.access), (None, change.access.clone()));
    assert_eq!((found.namespace_prefix.as_str(), found.revision), ("west-", Revision(2)));

    let project = world.fresh_name("project");
    world.create_project(&project).await.expect("a project");
    world.assignment(&project, &name).await.expect("a place");
    assert_eq!(refused(world.delete_cluster(&name).await), ErrorKind::ClusterInUse);
    let mut withdraw = |snapshot: &_| cluster::withdraw(snapshot, Expected::Any, &operator());
    let placement = &world.store.placement;
    placement.decide_cluster_assignment(&project, None, &mut withdraw).await.expect("withdrawn");
    let deletion = world.delete_cluster(&name).await.expect("a deletion");
    world.assert_recorded(deletion, found.id).await;
    assert_eq!(refused(world.delete_cluster(&name).await), ErrorKind::ClusterNotFound);
    assert!(clusters.fetch(&name, true).await.expect("a fetch").is_none(), "not by its name");
    let id = found.id.to_string();
    let gone = clusters.fetch(&id, true).await.expect("a fetch").expect("its row stays");
    assert_eq!(gone.deletion_id, Some(deletion));
    assert_eq!(refused(world.assignment(&project, &id).await), ErrorKind::ClusterNotFound);
    let facts = Found { identity: None, problem: None, facts: serde_json::json!({}) };
    let verified = placement.cluster_verified(found.id, &facts).await;
    assert!(matches!(verified, Err(Error::NotFound { .. })), "{verified:?}");
    let again = world.create_managed(&name, "eu").await.expect("the name is free again");
    let served = placement.cluster_list().await.expect("identities");
    let served: Vec<_> = served.iter().filter(|one| one.name == name).map(|one| one.id).collect();
    assert_eq!(served, [again]);
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let owned = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Labels::parse(owned.collect::<BTreeMap<_, _>>()).expect("valid labels")
}

pub(super) async fn labels_in_effect_and_blockers_select(world: &World) {
    let (project, _) = world.furnished().await;
    let far = labels(&[("team", "a"), ("cost/center", "7"), ("12", "digits")]);
    let change = ProjectChange { labels: Some(far), mesh_cidr: None };
    let mut rule = |snapshot: &_| project::update(snapshot, &change, Expected::Any, &operator());
    world.store.kind::<Project>().decide(&project, &mut rule).await.expect("labels");
    let first = world.declare_in(&project).await.expect("a declaration");
    let second = world.declare_in(&project).await.expect("a declaration");
    let near = labels(&[("team", "b=c\"")]);
    let mut rule = |snapshot: &ResourceSnapshot| {
        let updated = update::relabel(snapshot, Some(near.as_map()), Expected::Any, &operator())?;
        Ok(updated.commit)
    };
    let key = ResourceKey::Resource(second.resource);
    world.store.broker.decide(key, &mut rule).await.expect("labels");
    let mut block = |snapshot: &ResourceSnapshot| {
        let blocker = Blocker {
            code: BlockerCode::NamespaceNotReady,
            message: "for the suite".to_owned(),
            since: snapshot.now,
            evidence: serde_json::json!({}),
            next_retry_at: None,
        };
        Ok(Commit {
            writes: vec![Write::BlockersReplace(second.attempt.into(), vec![blocker])],
            ..Commit::default()
        })
    };
    world.store.broker.decide(key, &mut block).await.expect("a blocker");

    let select = |texts: &[&str]| ResourceFilter {
        project: Some(project.clone()),
        labels: texts
            .iter()
            .map(|text| LabelSelector::parse(text).expect("a valid selector"))
            .collect(),
        ..ResourceFilter::default()
    };
    let both = vec![first.resource, second.resource];
    let (only_first, only_second) = (vec![first.resource], vec![second.resource]);
    let blocked = |blocked| ResourceFilter { blocked: Some(blocked), ..select(&[]) };
    let table = [
        (select(&["team"]), both.clone()),
        (select(&["team=a"]), only_first.clone()),
        (select(&["team=b=c\""]), only_second.clone()),
        (select(&["cost/center=7"]), both.clone()),
        (select(&["12=digits"]), both.clone()),
        // The suite declares everything with `tier`; the second one lost it.
        (select(&["tier"]), only_first.clone()),
        (select(&["team=a", "tier"]), only_first),
        (select(&["tier", "team=b=c\""]), vec![]),
        (select(&["nothing"]), vec![]),
        (blocked(Blocked::ByAny), only_second.clone()),
        (blocked(Blocked::By(BlockerCode::NamespaceNotReady)), only_second.clone()),
        (blocked(Blocked::By(BlockerCode::NodeNotDraining)), vec![]),
    ];
    for (filter, expected) in table {
        let page = Page { after: None, limit: 10 };
        let found = world.store.broker.resource_list(&filter, page).await.expect("a list");
        let found: Vec<_> =
            found.iter().map(|row| row.as_ref().expect("a valid row").resource.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}
