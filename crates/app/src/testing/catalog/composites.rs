//! What the crossplane engine needs of the catalog: the type of the composites,
//! the facts of the cloud, and one credential per provider and project.

use std::collections::BTreeMap;
use std::sync::Arc;

use slipway_core::broker::snapshot::{LabelFact, ProviderFacts};
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::catalog::blueprint_version::{
    CompositeDefinition, CompositeScope, CompositeType, Engine,
};
use slipway_core::catalog::cloud::{self, Cloud, Endpoint};
use slipway_core::catalog::label::{self, LabelDefinition, LabelKey};
use slipway_core::catalog::project::{self, Project, ProjectChange};
use slipway_core::ids::{CloudId, LabelDefinitionId};
use slipway_core::precondition::Expected;
use slipway_core::text::Labels;
use slipway_core::{ErrorKind, Phase};

use super::catalog_client::{mk_content, name};
use crate::broker::port::DeclareKey;
use crate::ports::store::Error;
use crate::testing::races::at_once;
use crate::testing::world::{BLUEPRINT, Declared, World, operator, refused};

fn mk_definition() -> CompositeDefinition {
    CompositeDefinition {
        composite_type: CompositeType {
            group: "nodes.example.org".to_owned(),
            version: "v1".to_owned(),
            kind: "XServer".to_owned(),
            plural: "xservers".to_owned(),
            scope: CompositeScope::Cluster,
        },
        cloud_tags: true,
    }
}

impl World {
    /// The slug of a blueprint of engine crossplane with one version.
    async fn crossplane_blueprint(&self) -> String {
        let slug = self.fresh_name("blueprint");
        self.create_blueprint_for(Engine::Crossplane, &slug).await.expect("a blueprint");
        let documents = Ok(mk_definition());
        self.publish_with(&slug, &mk_content("v1"), &documents).await.expect("a version");
        slug
    }

    fn key_with(&self, project: &str, blueprint: &str, credential: &str) -> DeclareKey {
        DeclareKey {
            blueprint: blueprint.to_owned(),
            credential: Some(credential.to_owned()),
            ..self.declare_key_in(project)
        }
    }

    async fn facts(&self, declared: &Declared) -> Option<ProviderFacts> {
        self.snapshot(declared.attempt).await.provider.map(|facts| (*facts).clone())
    }
}

pub(super) async fn what_a_version_is_made_into_comes_back(world: &World) {
    let slug = world.crossplane_blueprint().await;
    let blueprint =
        world.store.kind::<Blueprint>().fetch(&slug, false).await.expect("a fetch").expect("it is");
    let version = world.store.catalog.version_fetch(blueprint.id, "v1").await.expect("a fetch");
    assert_eq!(version.expect("the version is there").composite, Some(mk_definition()));
    let refusal = world.publish(&slug, &mk_content("v2")).await;
    assert_eq!(refused(refusal), ErrorKind::XrdInvalid, "documents that could not be read");

    let (project, credential) = world.furnished_managed().await;
    let key = world.key_with(&project, &slug, &credential.to_string());
    let declared = world.declare_by(&key).await.expect("a declaration");
    let snapshot = world.snapshot(declared.attempt).await;
    assert_eq!(snapshot.blueprint.composite_type, Some(mk_definition().composite_type));
    assert!(snapshot.blueprint.cloud_tags);
    let (project, credential) = world.furnished().await;
    let key = world.key_with(&project, &slug, &credential.to_string());
    let refusal = world.declare_by(&key).await;
    assert_eq!(refused(refusal), ErrorKind::EngineNotServed, "nobody could ever make it there");
    let local = world.declare_in(&project).await.expect("a declaration");
    let snapshot = world.snapshot(local.attempt).await;
    assert_eq!(snapshot.blueprint.composite_type, None);
    assert!(!snapshot.blueprint.cloud_tags);
}

/// Labels: the suite declares `tier` on every resource.
pub(super) async fn the_facts_of_a_cloud_are_those_in_effect(world: &World) {
    let slug = world.crossplane_blueprint().await;
    let named = world.fresh_name("cloud");
    let endpoint = serde_json::json!({ "region": "fsn1", "port": 443, "open": true });
    let endpoint = endpoint.as_object().expect("a map").clone();
    let new = cloud::NewCloud {
        id: CloudId::new(world.uuid()),
        name: name(&named),
        provider: name("local"),
        endpoint: Endpoint::parse(endpoint.clone()).expect("a valid endpoint"),
    };
    let mut rule = |snapshot: &_| cloud::create(snapshot, &new, &operator());
    world.store.kind::<Cloud>().decide(&named, &mut rule).await.expect("a cloud");
    let credential = world.create_credential(&named, "main").await.expect("a credential");
    let (project, _) = world.furnished_managed().await;
    let (elsewhere, _) = world.furnished().await;
    for project in [&project, &elsewhere] {
        world.assign(project, credential).await.expect("an assignment");
    }

    let far = format!("cost/{}", &world.uuid().simple().to_string()[16..]);
    let pairs = [("tier", "far"), (&far, "7"), ("note", "not defined")];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let labels = Labels::parse(BTreeMap::from(pairs)).expect("valid labels");
    let change = ProjectChange { labels: Some(labels), mesh_cidr: None };
    let mut rule = |snapshot: &_| project::update(snapshot, &change, Expected::Any, &operator());
    world.store.kind::<Project>().decide(&project, &mut rule).await.expect("labels");
    let definition = label::NewLabel {
        id: LabelDefinitionId::new(world.uuid()),
        key: LabelKey::parse("key", &far).expect("a valid key"),
        description: String::new(),
        propagate: true,
    };
    let mut rule = |snapshot: &_| label::define(snapshot, &definition, &operator());
    world.store.kind::<LabelDefinition>().decide(&far, &mut rule).await.expect("a label");

    let key = world.key_with(&project, &slug, &credential.to_string());
    let declared = world.declare_by(&key).await.expect("a declaration");
    let key = world.key_with(&elsewhere, BLUEPRINT, &credential.to_string());
    let local = world.declare_by(&key).await.expect("a declaration");
    let fact = |value: &str, propagate| LabelFact { value: value.to_owned(), propagate };
    let expected = ProviderFacts {
        cloud_id: new.id,
        provider: "local".to_owned(),
        endpoint,
        credential_id: credential,
        kv_mount: "secret".to_owned(),
        kv_path: format!("clouds/{}/credentials/{credential}", new.id),
        labels: BTreeMap::from([
            ("note".to_owned(), fact("not defined", false)),
            ("tier".to_owned(), fact("ünïcode", false)),
            (far.clone(), fact("7", true)),
        ]),
    };
    assert_eq!(world.facts(&declared).await, Some(expected.clone()));
    assert_eq!(world.facts(&local).await, None, "nothing is rendered from them there");
    let both = [local.attempt, declared.attempt];
    let both = world.store.broker.attempt_load(&both).await.expect("a load");
    let found: Vec<_> =
        both.iter().map(|row| row.as_ref().expect("a row").provider.is_some()).collect();
    assert_eq!(found, [false, true], "in one batch");

    let set = async |propagate| {
        let mut rule = |snapshot: &_| {
            label::update(snapshot, None, Some(propagate), Expected::Any, &operator())
        };
        world.store.kind::<LabelDefinition>().decide(&far, &mut rule).await.expect("an update");
        world.facts(&declared).await.expect("the facts").labels[&far].clone()
    };
    assert_eq!(set(false).await, fact("7", false), "as it is now");
    assert_eq!(set(true).await, fact("7", true));
    world.delete_label(&far).await.expect("a deletion");
    let after = world.facts(&declared).await.expect("the facts");
    assert_eq!(after.labels[&far], fact("7", false), "nobody defines it any more");
}

pub(super) async fn a_second_credential_of_a_provider_is_refused(world: &World) {
    let slug = world.crossplane_blueprint().await;
    let (project, first) = world.furnished_managed().await;
    let (local, _) = world.furnished().await;
    let second = world.create_credential("local", &world.fresh_name("credential")).await;
    let second = second.expect("a credential");
    for (project, credential) in [(&project, second), (&local, first), (&local, second)] {
        world.assign(project, credential).await.expect("an assignment");
    }
    let declare = async |credential: &dyn ToString| -> Result<Declared, Error> {
        world.declare_by(&world.key_with(&project, &slug, &credential.to_string())).await
    };
    for credential in [first, second] {
        let key = world.key_with(&local, BLUEPRINT, &credential.to_string());
        world.declare_by(&key).await.expect("another engine shares nothing");
    }
    let held = declare(&first).await.expect("the first decides");
    declare(&first).await.expect("the same credential");
    let conflict = ErrorKind::ProviderConfigConflict;
    assert_eq!(refused(declare(&second).await), conflict);
    // Deleting one is not enough: another still uses the first credential.
    world.delete(held.resource).await.expect("a deletion");
    world.drive(held.attempt, Phase::Deleted).await;
    assert_eq!(refused(declare(&second).await), conflict);
}

/// Under the project's lock, the first declaration determines the credential.
pub(super) async fn two_credentials_of_a_provider_at_once(world: &Arc<World>) {
    let slug = world.crossplane_blueprint().await;
    let (project, first) = world.furnished_managed().await;
    let second = world.create_credential("local", &world.fresh_name("credential")).await;
    let second = second.expect("a credential");
    world.assign(&project, second).await.expect("an assignment");
    let declare = |credential: String| {
        let (world, key) = (Arc::clone(world), world.key_with(&project, &slug, &credential));
        async move { world.declare_by(&key).await }
    };
    let (a, b) = at_once(declare(first.to_string()), declare(second.to_string())).await;
    assert_ne!(a.is_ok(), b.is_ok(), "{a:?} {b:?}");
    let loser = if a.is_err() { refused(a) } else { refused(b) };
    assert_eq!(loser, ErrorKind::ProviderConfigConflict);
}
