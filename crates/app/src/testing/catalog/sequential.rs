//! Projects, clouds, credentials, blueprints and labels, one after the other.

use std::collections::BTreeMap;

use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::Credential;
use slipway_core::catalog::label::{self, LabelDefinition, LabelKey};
use slipway_core::catalog::project::{self, Project, ProjectChange};
use slipway_core::ids::{LabelDefinitionId, Revision};
use slipway_core::placement::cluster::Cluster;
use slipway_core::precondition::Expected;
use slipway_core::subject::SubjectKind;
use slipway_core::text::Labels;
use slipway_core::{ErrorKind, Phase};
use uuid::Uuid;

use super::catalog_client::mk_content;
use crate::broker::port::DeclareKey;
use crate::catalog::port::CredentialFilter;
use crate::kind::ShowDeleted;
use crate::ports::store::{Error, Page};
use crate::testing::world::{World, operator, refused};

pub(super) async fn a_project_is_made_changed_and_deleted(world: &World) {
    let named = world.fresh_name("project");
    let id = world.create_project(&named).await.expect("a project");
    assert_eq!(refused(world.create_project(&named).await), ErrorKind::NameTaken);

    let labels = Labels::parse(BTreeMap::from([("tier".to_owned(), "ünï".to_owned())]));
    let labels = labels.expect("valid labels");
    let relabel = |expected| {
        let change = ProjectChange { labels: Some(labels.clone()), mesh_cidr: None };
        move |snapshot: &_| project::update(snapshot, &change, expected, &operator())
    };
    let first = Expected::Exactly(Revision::FIRST);
    world.store.kind::<Project>().decide(&named, &mut relabel(first)).await.expect("labels");
    let again = world.store.kind::<Project>().decide(&named, &mut relabel(first)).await;
    assert_eq!(refused(again), ErrorKind::RevisionStale);
    let found = world.store.kind::<Project>().fetch(&id.to_string(), false).await.expect("a fetch");
    let found = found.expect("the project is there");
    assert_eq!((found.revision, &found.labels), (Revision(2), &labels));
    assert!(found.updated_at >= found.created_at);
    let by_id = world.store.catalog.project_labels(&[id]).await.expect("labels");
    assert_eq!(by_id, BTreeMap::from([(id, labels)]));

    let deletion = world.delete_project(&named).await.expect("a deletion");
    world.assert_recorded(deletion, id).await;
    assert_eq!(world.store.kind::<Project>().fetch(&named, true).await.expect("a fetch"), None);
    assert_eq!(
        world.store.kind::<Project>().fetch(&id.to_string(), false).await.expect("a fetch"),
        None
    );
    let gone = world.store.kind::<Project>().fetch(&id.to_string(), true).await.expect("a fetch");
    assert_eq!(gone.and_then(|gone| gone.deletion_id), Some(deletion));
    assert_eq!(refused(world.delete_project(&named).await), ErrorKind::ProjectNotFound);
    let second = world.create_project(&named).await.expect("the name is free again");
    assert_ne!(second, id);
}

pub(super) async fn a_project_that_owns_something_stays(world: &World) {
    let (project, _) = world.furnished().await;
    let declared = world.declare_in(&project).await.expect("a declaration");
    assert_eq!(refused(world.delete_project(&project).await), ErrorKind::ProjectNotEmpty);
    world.delete(declared.resource).await.expect("a deletion");
    assert_eq!(refused(world.delete_project(&project).await), ErrorKind::ProjectNotEmpty);
    world.drive(declared.attempt, Phase::Deleted).await;
    world.delete_project(&project).await.expect("nothing lives in it");
}

pub(super) async fn nothing_is_declared_into_a_deleted_project(world: &World) {
    let (project, credential) = world.furnished().await;
    let id = world.store.kind::<Project>().fetch(&project, false).await.expect("a fetch");
    let id = id.expect("the project is there").id.to_string();
    world.delete_project(&project).await.expect("a deletion");
    for reference in [&project, &id] {
        let refusal = refused(world.declare_in(reference).await);
        assert_eq!(refusal, ErrorKind::ProjectNotFound);
        assert_eq!(refused(world.assign(reference, credential).await), ErrorKind::ProjectNotFound);
        assert_eq!(refused(world.assignment(reference, "local").await), ErrorKind::ProjectNotFound);
    }
    // A credential assigned only to a deleted project is unused.
    world.delete_credential(credential).await.expect("a deletion");
}

pub(super) async fn clouds_and_credentials_hold_each_other(world: &World) {
    let (first, second) = (world.fresh_name("cloud"), world.fresh_name("cloud"));
    let cloud = world.create_cloud(&first).await.expect("a cloud");
    world.create_cloud(&second).await.expect("a cloud");
    assert_eq!(refused(world.create_cloud(&first).await), ErrorKind::NameTaken);
    let named = world.fresh_name("credential");
    let credential = world.create_credential(&first, &named).await.expect("a credential");
    let taken = world.create_credential(&cloud.to_string(), &named).await;
    assert_eq!(refused(taken), ErrorKind::NameTaken);
    world.create_credential(&second, &named).await.expect("a name is unique within its cloud");
    let nowhere = world.create_credential("nowhere", &named).await;
    assert_eq!(refused(nowhere), ErrorKind::CloudNotFound);

    let filter = CredentialFilter { name: Some(named.clone()), ..CredentialFilter::default() };
    let page = Page { after: None, limit: 10 };
    let list = async |filter: &CredentialFilter| {
        world.store.kind::<Credential>().page(filter, page).await.expect("a list")
    };
    assert_eq!(list(&filter).await.len(), 2);
    let of_first = CredentialFilter { cloud: Some(first.clone()), ..filter.clone() };
    let found = list(&of_first).await;
    assert_eq!(found.len(), 1);
    let path = &found[0].coordinates.kv_path;
    assert_eq!(*path, format!("clouds/{cloud}/credentials/{credential}"));

    assert_eq!(refused(world.delete_cloud(&first).await), ErrorKind::CloudInUse);
    world.delete_credential(credential).await.expect("a deletion");
    assert_eq!(refused(world.delete_credential(credential).await), ErrorKind::CredentialNotFound);
    assert_eq!(list(&of_first).await.len(), 0);
    world.delete_cloud(&first).await.expect("nothing refers to it");
    let late = world.create_credential(&first, &named).await;
    assert_eq!(refused(late), ErrorKind::CloudNotFound);
    world.create_cloud(&first).await.expect("the name is free again");
}

pub(super) async fn a_deleted_credential_is_not_found_by_declarations(world: &World) {
    let (project, credential) = world.furnished().await;
    world.withdraw(&project, credential).await.expect("nobody uses it");
    let key =
        DeclareKey { credential: Some(credential.to_string()), ..world.declare_key_in(&project) };
    assert_eq!(refused(world.declare_by(&key).await), ErrorKind::CredentialNotAssigned);
    world.delete_credential(credential).await.expect("a deletion");
    assert_eq!(refused(world.declare_by(&key).await), ErrorKind::CredentialNotFound);
    assert_eq!(refused(world.assign(&project, credential).await), ErrorKind::CredentialNotFound);
}

pub(super) async fn an_assignment_stays_while_it_is_used(world: &World) {
    let (project, credential) = world.furnished().await;
    world.assign(&project, credential).await.expect("assigning twice is the same as once");
    let id = world.store.kind::<Project>().fetch(&project, false).await.expect("a fetch");
    let id = id.expect("the project is there").id;
    let page = Page { after: None, limit: 10 };
    let assigned = world.store.catalog.credential_assignment_list(id, page).await.expect("a list");
    assert_eq!(assigned.len(), 1);
    let declared = world.declare_in(&project).await.expect("a declaration");
    assert_eq!(refused(world.withdraw(&project, credential).await), ErrorKind::AssignmentInUse);
    assert_eq!(refused(world.delete_credential(credential).await), ErrorKind::CredentialInUse);
    world.delete(declared.resource).await.expect("a deletion");
    world.drive(declared.attempt, Phase::Deleted).await;
    world.withdraw(&project, credential).await.expect("nobody uses it any more");
    assert_eq!(refused(world.withdraw(&project, credential).await), ErrorKind::AssignmentNotFound);
    world.delete_credential(credential).await.expect("a deletion");
}

pub(super) async fn a_version_comes_back_as_it_was_published(world: &World) {
    let slug = world.fresh_name("blueprint");
    let blueprint = world.create_blueprint(&slug).await.expect("a blueprint");
    assert_eq!(refused(world.create_blueprint(&slug).await), ErrorKind::NameTaken);
    let content = mk_content("v1");
    let id = world.publish(&slug, &content).await.expect("a version");
    let again = world.publish(&slug, &content).await.expect("the same content");
    assert_eq!(again, id, "what is published once is one version");
    let other = slipway_core::catalog::blueprint::VersionContent {
        composition: "other".to_owned(),
        ..content.clone()
    };
    let refusal = refused(world.publish(&slug, &other).await);
    assert_eq!(refusal, ErrorKind::BlueprintVersionExists);
    for reference in ["v1", &id.to_string()] {
        let found = world.store.catalog.version_fetch(blueprint, reference).await.expect("a fetch");
        assert_eq!(found.expect("the version is there").content, content, "{reference}");
    }
    let nobody = world.publish("nothing", &content).await;
    assert_eq!(refused(nobody), ErrorKind::BlueprintNotFound);
}

pub(super) async fn a_retired_version_is_not_declared_from(world: &World) {
    let slug = world.fresh_name("blueprint");
    world.create_blueprint(&slug).await.expect("a blueprint");
    for version in ["v1", "v2"] {
        world.publish(&slug, &mk_content(version)).await.expect("a version");
    }
    let key = |version: Option<&str>| DeclareKey {
        blueprint: slug.clone(),
        version: version.map(str::to_owned),
        ..world.declare_key(&world.handle())
    };
    let before = world.declare_by(&key(Some("v2"))).await.expect("a declaration");
    for _ in 0..2 {
        world.retire(&slug, "v2").await.expect("retiring twice is the same as once");
    }
    let refusal = refused(world.declare_by(&key(Some("v2"))).await);
    assert_eq!(refusal, ErrorKind::BlueprintVersionRetired);
    let newest = world.declare_by(&key(None)).await.expect("the newest that is not retired");
    assert_eq!(world.snapshot(newest.attempt).await.blueprint.version, "v1");
    assert_eq!(world.snapshot(before.attempt).await.blueprint.version, "v2", "it goes on");
    let missing = refused(world.retire(&slug, "v9").await);
    assert_eq!(missing, ErrorKind::BlueprintVersionNotFound);
}

/// A blueprint is deleted with its versions once nothing that was made from them is left.
pub(super) async fn a_blueprint_is_deleted_while_nothing_is_made_from_it(world: &World) {
    let slug = world.fresh_name("blueprint");
    let id = world.create_blueprint(&slug).await.expect("a blueprint");
    world.publish(&slug, &mk_content("v1")).await.expect("a version");
    let key = |version: Option<&str>| DeclareKey {
        blueprint: slug.clone(),
        version: version.map(str::to_owned),
        ..world.declare_key(&world.handle())
    };
    let used = key(None);
    let declared = world.declare_by(&used).await.expect("a declaration");
    let refusal = match world.delete_blueprint(&slug).await {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal.kind, ErrorKind::BlueprintInUse);
    let named = format!("{}/{}", used.project, used.handle);
    assert!(refusal.message.starts_with("1 resource(s)"), "{refusal}");
    assert!(refusal.message.contains(&named), "{refusal}");
    world.delete(declared.resource).await.expect("a deletion");
    world.drive(declared.attempt, Phase::Deleted).await;
    let unproven = refused(world.delete_blueprint(&slug).await);
    assert_eq!(unproven, ErrorKind::BlueprintInUse, "its absence is proven once");
    let claimed = world.claim_now(declared.attempt).await;
    world.tick_proving(claimed, &CompositeReport::Absent).await.expect("a tick");

    let deletion = world.delete_blueprint(&slug).await.expect("nothing uses it");
    world.assert_recorded(deletion, id).await;
    let blueprints = world.store.kind::<Blueprint>();
    assert_eq!(blueprints.fetch(&slug, true).await.expect("a fetch"), None, "not by its slug");
    assert_eq!(blueprints.fetch(&id.to_string(), false).await.expect("a fetch"), None);
    let gone = blueprints.fetch(&id.to_string(), true).await.expect("a fetch");
    assert_eq!(gone.and_then(|gone| gone.deletion_id), Some(deletion));
    assert_eq!(refused(world.delete_blueprint(&slug).await), ErrorKind::BlueprintNotFound);
    for version in [None, Some("v1")] {
        let refusal = refused(world.declare_by(&key(version)).await);
        assert_eq!(refusal, ErrorKind::BlueprintNotFound, "{version:?}");
    }
    let late = refused(world.publish(&slug, &mk_content("v2")).await);
    assert_eq!(late, ErrorKind::BlueprintNotFound);
    let was = world.snapshot(declared.attempt).await;
    assert_eq!(was.blueprint.blueprint_id, id, "what was made from it can be read");

    let again = world.create_blueprint(&slug).await.expect("the slug is free again");
    let none = refused(world.declare_by(&key(Some("v1"))).await);
    assert_eq!(none, ErrorKind::BlueprintNotFound, "the old versions are not its own");
    world.publish(&slug, &mk_content("v1")).await.expect("a version");
    let declared = world.declare_by(&key(Some("v1"))).await.expect("a declaration");
    assert_eq!(world.snapshot(declared.attempt).await.blueprint.blueprint_id, again);
    let nothing = Uuid::max()..=Uuid::nil();
    let access = &world.store.access;
    let found = access.candidates(SubjectKind::Blueprint, &slug, &nothing, None).await;
    let found = found.expect("candidates");
    let found: Vec<_> = found.iter().map(|found| (found.id, found.is_live)).collect();
    assert_eq!(found, [(again.as_uuid(), true), (id.as_uuid(), false)]);
    let names = access.names(&[id.as_uuid()]).await.expect("names");
    assert_eq!(names.get(&id.as_uuid()), Some(&slug), "its deletion still has its name");
}

pub(super) async fn a_label_is_defined_once(world: &World) {
    let key = format!("suite/{}", world.uuid().simple());
    let new = |propagate| label::NewLabel {
        id: LabelDefinitionId::new(world.uuid()),
        key: LabelKey::parse("key", &key).expect("a valid key"),
        description: "ünï\ncode".to_owned(),
        propagate,
    };
    let (first, second) = (new(true), new(false));
    let define = async |new: &label::NewLabel| {
        let mut rule = |snapshot: &_| label::define(snapshot, new, &operator());
        world.store.kind::<LabelDefinition>().decide(&key, &mut rule).await
    };
    define(&first).await.expect("a label");
    assert_eq!(refused(define(&second).await), ErrorKind::NameTaken);
    let found = world
        .store
        .kind::<LabelDefinition>()
        .fetch(&key, false)
        .await
        .expect("a fetch")
        .expect("it is there");
    assert_eq!((found.id, found.propagate), (first.id, true));
    let mut update =
        |snapshot: &_| label::update(snapshot, None, Some(false), Expected::Any, &operator());
    world.store.kind::<LabelDefinition>().decide(&key, &mut update).await.expect("an update");
    let found = world
        .store
        .kind::<LabelDefinition>()
        .fetch(&first.id.to_string(), false)
        .await
        .expect("a fetch");
    let found = found.expect("it is there by its id");
    assert_eq!((found.propagate, found.description.as_str()), (false, "ünï\ncode"));
    let deletion = world.delete_label(&key).await.expect("a deletion");
    world.assert_recorded(deletion, first.id).await;
    let labels = world.store.kind::<LabelDefinition>();
    assert_eq!(labels.fetch(&key, true).await.expect("a fetch"), None, "not by its key");
    let gone = labels.fetch(&first.id.to_string(), true).await.expect("a fetch");
    assert_eq!(gone.and_then(|gone| gone.deletion_id), Some(deletion));
    assert_eq!(refused(world.delete_label(&key).await), ErrorKind::LabelNotFound);
    define(&second).await.expect("the key is free again");
}

/// Checks that pages of two give the same list as one large page.
macro_rules! pages_agree {
    ($list:expr, $id:expr) => {{
        let all: Vec<_> = $list(Page { after: None, limit: 10_000 })
            .await
            .expect("a list")
            .iter()
            .map($id)
            .collect();
        assert!(all.len() >= 2, "too few rows to page through");
        assert!(all.is_sorted(), "in the order of their ids");
        let mut paged = Vec::new();
        loop {
            let page = Page { after: paged.last().copied(), limit: 2 };
            let next: Vec<_> = $list(page).await.expect("a page").iter().map($id).collect();
            if next.is_empty() {
                break;
            }
            paged.extend(next);
        }
        assert_eq!(paged, all);
    }};
}

pub(super) async fn pages_give_each_row_once(world: &World) {
    let store = &world.store;
    world.create_cluster(&world.fresh_name("cluster")).await.expect("a cluster");
    let more = world.fresh_name("blueprint");
    let blueprint = world.create_blueprint(&more).await.expect("a blueprint");
    for version in ["v1", "v2", "v3"] {
        world.publish(&more, &mk_content(version)).await.expect("a version");
    }
    let filter = CredentialFilter { show_deleted: true, ..CredentialFilter::default() };
    pages_agree!(|page| store.kind::<Project>().page(&ShowDeleted(true), page), |row| row.id);
    pages_agree!(|page| store.kind::<Cloud>().page(&ShowDeleted(true), page), |row| row.id);
    pages_agree!(|page| store.kind::<Credential>().page(&filter, page), |row| row.id);
    pages_agree!(|page| store.kind::<Blueprint>().page(&ShowDeleted(true), page), |row| row.id);
    pages_agree!(|page| store.catalog.version_list(blueprint, page), |row| row.id);
    pages_agree!(|page| store.kind::<Cluster>().page(&ShowDeleted(true), page), |row| row.id);
    pages_agree!(|page| store.placement.cluster_assignment_list(page), |row| row.project_id);
    let live = store
        .kind::<Project>()
        .page(&ShowDeleted(false), Page { after: None, limit: 10_000 })
        .await;
    assert!(live.expect("a list").iter().all(|project| project.deleted_at.is_none()));
}
