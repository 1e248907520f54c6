//! Races about the catalog, and their allowed outcomes.

use std::sync::Arc;

use slipway_core::ErrorKind;
use slipway_core::access::idempotency::Answer;
use slipway_core::catalog::blueprint::VersionContent;

use super::catalog_client::mk_content;
use crate::broker::port::DeclareKey;
use crate::ports::store::{Error, Page};
use crate::testing::races::at_once;
use crate::testing::world::{World, refused};

/// One of two wins; the loser is refused with one of these.
fn exactly_one<A: std::fmt::Debug, B: std::fmt::Debug>(
    context: &str,
    first: Result<A, Error>,
    second: Result<B, Error>,
    losers: &[ErrorKind],
) {
    assert_ne!(first.is_ok(), second.is_ok(), "{context}: {first:?} {second:?}");
    let loser = if first.is_err() { refused(first) } else { refused(second) };
    assert!(losers.contains(&loser), "{context}: {loser}");
}

pub(super) async fn create_with_create_of_the_same_name(world: &Arc<World>) {
    let named = world.fresh_name("project");
    let create = |named: String| {
        let world = Arc::clone(world);
        async move { world.create_project(&named).await }
    };
    let (first, second) = at_once(create(named.clone()), create(named)).await;
    exactly_one("create with create", first, second, &[ErrorKind::NameTaken]);
}

/// Invariant 12, for each parent that can be deleted: either the child exists
/// and the parent stays, or the parent is gone and the child is refused.
pub(super) async fn nothing_is_inserted_under_a_parent_that_leaves(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let names = (project.clone(), project.clone());
    let (declared, deleted) =
        at_once(async move { catalog_client.0.declare_in(&names.0).await }, async move {
            catalog_client.1.delete_project(&names.1).await
        })
        .await;
    let losers = [ErrorKind::ProjectNotFound, ErrorKind::ProjectNotEmpty];
    exactly_one("declare with delete of the project", declared, deleted, &losers);

    let (project, _) = world.furnished().await;
    let credential = world.create_credential("local", &world.fresh_name("credential")).await;
    let credential = credential.expect("a credential");
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let (assigned, deleted) =
        at_once(async move { catalog_client.0.assign(&project, credential).await }, async move {
            catalog_client.1.delete_credential(credential).await
        })
        .await;
    let losers = [ErrorKind::CredentialNotFound, ErrorKind::CredentialInUse];
    exactly_one("assign with delete of the credential", assigned, deleted, &losers);

    let cloud = world.fresh_name("cloud");
    world.create_cloud(&cloud).await.expect("a cloud");
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let names = (cloud.clone(), cloud);
    let (created, deleted) = at_once(
        async move { catalog_client.0.create_credential(&names.0, "a").await },
        async move { catalog_client.1.delete_cloud(&names.1).await },
    )
    .await;
    let losers = [ErrorKind::CloudNotFound, ErrorKind::CloudInUse];
    exactly_one("create with delete of the cloud", created, deleted, &losers);

    let slug = world.fresh_name("blueprint");
    world.create_blueprint(&slug).await.expect("a blueprint");
    world.publish(&slug, &mk_content("v1")).await.expect("a version");
    let key = DeclareKey { blueprint: slug.clone(), ..world.declare_key(&world.handle()) };
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let (declared, deleted) =
        at_once(async move { catalog_client.0.declare_by(&key).await }, async move {
            catalog_client.1.delete_blueprint(&slug).await
        })
        .await;
    let losers = [ErrorKind::BlueprintNotFound, ErrorKind::BlueprintInUse];
    exactly_one("declare with delete of the blueprint", declared, deleted, &losers);

    let (project, cluster) = (world.fresh_name("project"), world.fresh_name("cluster"));
    world.create_project(&project).await.expect("a project");
    world.create_managed(&cluster, "eu").await.expect("a cluster");
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let names = (cluster.clone(), cluster);
    let (assigned, deleted) =
        at_once(async move { catalog_client.0.assignment(&project, &names.0).await }, async move {
            catalog_client.1.delete_cluster(&names.1).await
        })
        .await;
    let losers = [ErrorKind::ClusterNotFound, ErrorKind::ClusterInUse];
    exactly_one("assign with delete of the cluster", assigned, deleted, &losers);
}

/// Whichever comes first, a version is published of a blueprint that was there.
pub(super) async fn publish_with_delete(world: &Arc<World>) {
    let slug = world.fresh_name("blueprint");
    world.create_blueprint(&slug).await.expect("a blueprint");
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let names = (slug.clone(), slug);
    let (published, deleted) = at_once(
        async move { catalog_client.0.publish(&names.0, &mk_content("v1")).await },
        async move { catalog_client.1.delete_blueprint(&names.1).await },
    )
    .await;
    deleted.expect("a deletion");
    if published.is_err() {
        assert_eq!(refused(published), ErrorKind::BlueprintNotFound);
    }
}

pub(super) async fn withdraw_with_declare(world: &Arc<World>) {
    let (project, credential) = world.furnished().await;
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let names = (project.clone(), project);
    let (declared, withdrawn) =
        at_once(async move { catalog_client.0.declare_in(&names.0).await }, async move {
            catalog_client.1.withdraw(&names.1, credential).await
        })
        .await;
    // If the declaration names no credential and the project has none left, none is found.
    let losers = [
        ErrorKind::AssignmentInUse,
        ErrorKind::CredentialNotAssigned,
        ErrorKind::CredentialNotFound,
    ];
    exactly_one("declare with withdraw", declared, withdrawn, &losers);
}

/// In either order, a resource is declared on the cluster of its project.
pub(super) async fn move_with_declare(world: &Arc<World>) {
    let (project, _) = world.furnished().await;
    let cluster = world.fresh_name("cluster");
    world.create_cluster(&cluster).await.expect("a cluster");
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let names = (project.clone(), project);
    let (declared, moved) =
        at_once(async move { catalog_client.0.declare_in(&names.0).await }, async move {
            catalog_client.1.assignment(&names.1, &cluster).await
        })
        .await;
    if moved.is_err() {
        assert_eq!(refused(moved), ErrorKind::ClusterAssignmentImmutable);
    }
    let snapshot = world.snapshot(declared.expect("a declaration").attempt).await;
    let assignment = snapshot.placement.as_ref().expect("the project is placed");
    assert_eq!(snapshot.attempt.partition(), assignment.cluster_id.into());
}

pub(super) async fn publish_with_publish(world: &Arc<World>) {
    let slug = world.fresh_name("blueprint");
    let blueprint = world.create_blueprint(&slug).await.expect("a blueprint");
    let publish = |content: VersionContent| {
        let (world, slug) = (Arc::clone(world), slug.clone());
        async move { world.publish(&slug, &content).await }
    };
    let other = VersionContent { xrd: "other".to_owned(), ..mk_content("v1") };
    let (first, second) = at_once(publish(mk_content("v1")), publish(other)).await;
    let losers = [ErrorKind::BlueprintVersionExists];
    exactly_one("publish with publish of another content", first, second, &losers);
    let (first, second) = at_once(publish(mk_content("v2")), publish(mk_content("v2"))).await;
    assert_eq!(first.expect("a version"), second.expect("the same version"));
    let page = Page { after: None, limit: 10 };
    let versions = world.store.catalog.version_list(blueprint, page).await.expect("a list");
    assert_eq!(versions.len(), 2);
}

pub(super) async fn retire_with_declare(world: &Arc<World>) {
    let slug = world.fresh_name("blueprint");
    world.create_blueprint(&slug).await.expect("a blueprint");
    world.publish(&slug, &mk_content("v1")).await.expect("a version");
    let key = DeclareKey { blueprint: slug.clone(), ..world.declare_key(&world.handle()) };
    let catalog_client = (Arc::clone(world), Arc::clone(world));
    let (declared, retired) =
        at_once(async move { catalog_client.0.declare_by(&key).await }, async move {
            catalog_client.1.retire(&slug, "v1").await
        })
        .await;
    retired.expect("a retirement");
    if declared.is_err() {
        assert_eq!(refused(declared), ErrorKind::BlueprintVersionRetired);
    }
}

/// The key decides, even if the two requests would create different things.
pub(super) async fn two_requests_with_one_key(world: &Arc<World>) {
    let key = world.uuid().to_string();
    let create = |body: &'static str| {
        let (world, named) = (Arc::clone(world), world.fresh_name("project"));
        let request = world.request(&key, body);
        async move { world.create_project_bound(&named, Some(request)).await }
    };
    let (first, second) = at_once(create("one"), create("another")).await;
    let made = first.as_ref().or(second.as_ref()).expect("one of them is made").as_uuid();
    let losers = [ErrorKind::IdempotencyKeyReused];
    exactly_one("two requests with one key", first, second, &losers);
    let bound = world.store.access.idempotency_find("suite", &key).await.expect("an answer");
    assert_eq!(bound.expect("the key is bound").record.subject_id, made);
}

/// Both callers get the answer that was stored first, whole.
pub(super) async fn two_answers_of_one_key(world: &Arc<World>) {
    let key = world.uuid().to_string();
    let request = Some(world.request(&key, "one"));
    world.create_project_bound(&world.fresh_name("project"), request).await.expect("a project");
    let find = async || {
        let found = world.store.access.idempotency_find("suite", &key).await.expect("an answer");
        found.expect("the key is bound")
    };
    let record = find().await.record;
    let keep = |answer: Answer| {
        let world = Arc::clone(world);
        async move { world.store.access.idempotency_answer(record.id, &answer).await }
    };
    let body = |text: &str| text.to_owned();
    let (first, second) = at_once(
        keep(Answer { status: 201, location: Some(body("/a")), etag: None, body: body("a") }),
        keep(Answer { status: 202, location: None, etag: Some(body("b")), body: body("b") }),
    )
    .await;
    let (first, second) = (first.expect("an answer"), second.expect("an answer"));
    assert_eq!(first, second);
    assert_eq!(find().await.answer, first);
}
