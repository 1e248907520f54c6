//! What the crossplane engine needs of the catalog: the type of the composites,
//! the facts of the cloud, and which credentials of a provider a project may use.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use slipway_core::broker::snapshot::{LabelFact, ProviderFacts};
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::catalog::blueprint_version::{
    CompositeDefinition, CompositeScope, CompositeType, Documents, Engine,
};
use slipway_core::catalog::cloud::{self, Cloud, Endpoint};
use slipway_core::catalog::label::{self, LabelDefinition, LabelKey};
use slipway_core::catalog::parameters::ParameterSchema;
use slipway_core::catalog::project::{self, Project, ProjectChange};
use slipway_core::commit::Commit;
use slipway_core::ids::{CloudCredentialId, CloudId, LabelDefinitionId, ProjectId};
use slipway_core::placement::provider_config;
use slipway_core::placement::shared_objects::ProjectNamespace;
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
    /// The slug of a blueprint of engine crossplane with version `v1`, and version `own`, which
    /// takes the name of its ProviderConfig.
    async fn crossplane_blueprint(&self) -> String {
        let slug = self.fresh_name("blueprint");
        self.create_blueprint_for(Engine::Crossplane, &slug).await.expect("a blueprint");
        let composition = "xservers".to_owned();
        let documents = Ok(Documents { composite: mk_definition(), composition });
        let mut own = mk_content("own");
        let mut schema = own.parameter_schema.document().clone();
        let name = json!({ "name": provider_config::PARAMETER, "type": "string" });
        schema["parameters"].as_array_mut().expect("a list").push(name);
        own.parameter_schema = ParameterSchema::read(schema).expect("a valid schema");
        for content in [own, mk_content("v1")] {
            self.publish_with(&slug, &content, &documents).await.expect("a version");
        }
        slug
    }

    /// A project with a second credential of the same provider.
    async fn furnished_with_two(&self) -> (String, CloudCredentialId, CloudCredentialId) {
        let (project, first) = self.furnished_managed().await;
        let second = self.create_credential("local", &self.fresh_name("credential")).await;
        let second = second.expect("a credential");
        self.assign(&project, second).await.expect("an assignment");
        (project, first, second)
    }

    /// What the resources of a project use, by ProviderConfig.
    async fn configs(&self, project: ProjectId) -> Vec<(String, CloudCredentialId)> {
        let mut uses = Vec::new();
        let mut rule = |found: &ProjectNamespace| {
            uses = found.uses.iter().map(|one| (one.config.clone(), one.credential_id)).collect();
            Ok(Commit::default())
        };
        let decided = self.store.placement.decide_project_namespace(project, &mut rule).await;
        decided.expect("a decision");
        uses
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
    let version = version.expect("the version is there");
    assert_eq!(version.composite, Some(mk_definition()));
    assert!(!version.own_provider_config);
    assert_eq!(version.composition_name, None, "somebody else installs it");
    let own = world.store.catalog.version_fetch(blueprint.id, "own").await.expect("a fetch");
    assert!(own.expect("the version is there").own_provider_config);
    let refusal = world.publish(&slug, &mk_content("v2")).await;
    assert_eq!(refused(refusal), ErrorKind::XrdInvalid, "documents that could not be read");

    let (project, credential) = world.furnished_managed().await;
    let key = world.key_with(&project, &slug, &credential.to_string());
    let declared = world.declare_by(&key).await.expect("a declaration");
    let snapshot = world.snapshot(declared.attempt).await;
    assert_eq!(snapshot.blueprint.composite_type, Some(mk_definition().composite_type));
    assert!(snapshot.blueprint.cloud_tags && !snapshot.blueprint.own_provider_config);
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
    let (project, first, second) = world.furnished_with_two().await;
    let (local, _) = world.furnished().await;
    for credential in [first, second] {
        world.assign(&local, credential).await.expect("an assignment");
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

/// A version that takes the name of its ProviderConfig shares none, whatever others use.
pub(super) async fn a_credential_has_a_provider_config_of_its_own(world: &World) {
    let slug = world.crossplane_blueprint().await;
    let (project, first, second) = world.furnished_with_two().await;
    let declare = async |version: &str, credential: CloudCredentialId| {
        let key = world.key_with(&project, &slug, &credential.to_string());
        world.declare_by(&DeclareKey { version: Some(version.to_owned()), ..key }).await
    };
    let conflict = ErrorKind::ProviderConfigConflict;
    let own_second = declare("own", second).await.expect("the first of all");
    let snapshot = world.snapshot(own_second.attempt).await;
    assert!(snapshot.blueprint.own_provider_config);
    let shared_first = declare("v1", first).await.expect("nobody shares it yet");
    assert_eq!(refused(declare("v1", second).await), conflict);
    for credential in [first, second] {
        declare("own", credential).await.expect("beside the shared one");
    }
    let own = |credential| (provider_config::name("local", Some(credential)), credential);
    let id = snapshot.resource.project_id;
    let uses = [("local".to_owned(), first), own(first), own(second)];
    assert_eq!(world.configs(id).await, uses, "each once");

    // A retry may change the version, and is held to the same.
    world.fail(own_second.attempt, "sold out").await;
    let corrected = async |declared: &Declared, version: &str| {
        world.correct(declared.resource, json!({ "version": version })).await
    };
    assert_eq!(refused(corrected(&own_second, "v1").await), conflict);
    world.fail(shared_first.attempt, "sold out").await;
    corrected(&shared_first, "own").await.expect("it gives the shared one up");
    assert_eq!(refused(corrected(&own_second, "v1").await), conflict, "once it is gone");
    world.drive(shared_first.attempt, Phase::Deleted).await;
    corrected(&own_second, "v1").await.expect("nobody uses it");
    assert_eq!(refused(declare("v1", first).await), conflict, "of the attempt that follows");
    declare("v1", second).await.expect("the same credential");
}

/// Two retries that change to the shared ProviderConfig lock no common project.
pub(super) async fn two_retries_with_two_credentials_at_once(world: &Arc<World>) {
    let slug = world.crossplane_blueprint().await;
    let (project, first, second) = world.furnished_with_two().await;
    let mut retries = Vec::new();
    for credential in [first, second] {
        let key = world.key_with(&project, &slug, &credential.to_string());
        let key = DeclareKey { version: Some("own".to_owned()), ..key };
        let declared = world.declare_by(&key).await.expect("a declaration");
        world.fail(declared.attempt, "sold out").await;
        let world = Arc::clone(world);
        retries.push(
            async move { world.correct(declared.resource, json!({ "version": "v1" })).await },
        );
    }
    let [a, b] = <[_; 2]>::try_from(retries).ok().expect("two of them");
    let (a, b) = at_once(a, b).await;
    assert_ne!(a.is_ok(), b.is_ok(), "{a:?} {b:?}");
    let loser = if a.is_err() { refused(a) } else { refused(b) };
    assert_eq!(loser, ErrorKind::ProviderConfigConflict);
}

/// Under the project's lock, the first declaration determines the credential.
pub(super) async fn two_credentials_of_a_provider_at_once(world: &Arc<World>) {
    let slug = world.crossplane_blueprint().await;
    let (project, first, second) = world.furnished_with_two().await;
    let declare = |credential: String| {
        let (world, key) = (Arc::clone(world), world.key_with(&project, &slug, &credential));
        async move { world.declare_by(&key).await }
    };
    let (a, b) = at_once(declare(first.to_string()), declare(second.to_string())).await;
    assert_ne!(a.is_ok(), b.is_ok(), "{a:?} {b:?}");
    let loser = if a.is_err() { refused(a) } else { refused(b) };
    assert_eq!(loser, ErrorKind::ProviderConfigConflict);
}
