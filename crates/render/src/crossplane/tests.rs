//! Snapshots of the composite by strategy and scope, what a later apply keeps,
//! and what we own.

use std::collections::BTreeMap;
use std::sync::Arc;

use slipway_core::broker::attempt::{ProvisionedResource, StoredAttempt};
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::LabelFact;
use slipway_core::catalog::blueprint_version::{
    BlueprintVersion, CompositeScope, CompositeType, Engine, InjectionStrategy, MeshRole,
};
use slipway_core::catalog::parameters::{ParameterSchema, ParameterValues};
use slipway_core::fixtures::{mk_blueprint, mk_provider_facts, mk_snapshot, mk_stored_attempt};
use slipway_core::ids::{BootstrapTokenId, InstallationId};
use slipway_core::nodes::token::{Carried, SecretHash};
use slipway_core::secret::Secret;
use uuid::Uuid;

use super::*;
use crate::composite::{carried, injected, owned_hash};
use crate::{can_inject, composite_of};

const TOKEN: &str = "psb_live_aaaaaaaaaaaaaaaaaaaaaaaaaa_node_bbbbbbbbbbbbbbbbbbbbbbbb";

fn settings() -> NodeSettings {
    NodeSettings {
        installation: InstallationId::new(Uuid::from_u128(1)),
        public_url: "https://slipway.example".to_owned(),
        heartbeat_interval_ms: 30_000,
        orphan_after_ms: 600_000,
        node_image: Some("registry.example/plexd:1".to_owned()),
        authorities: None,
    }
}

fn id() -> BootstrapTokenId {
    BootstrapTokenId::new(Uuid::from_u128(20))
}

fn fresh() -> Injection {
    Injection::Fresh { id: id(), token: Secret::new(TOKEN) }
}

/// A resource with one parameter and one label that propagates.
fn snapshot(strategy: InjectionStrategy) -> ResourceSnapshot {
    let values = serde_json::from_value(json!({ "busy_seconds": 3 })).unwrap();
    let label = |value: &str, propagate| LabelFact { value: value.to_owned(), propagate };
    let mut provider = mk_provider_facts();
    provider.labels = BTreeMap::from([
        ("note".to_owned(), label("hidden", false)),
        ("path".to_owned(), label("a:b", true)),
        ("team".to_owned(), label("red", true)),
    ]);
    ResourceSnapshot {
        attempt: ProvisionedResource::hydrate(StoredAttempt {
            parameter_values: ParameterValues::from_stored(values),
            ..mk_stored_attempt(Phase::Pending)
        })
        .unwrap(),
        blueprint: Arc::new(BlueprintVersion {
            slug: "hetzner-vm".to_owned(),
            engine: Engine::Crossplane,
            composite_type: Some(CompositeType {
                group: "nodes.example.org".to_owned(),
                version: "v1alpha1".to_owned(),
                kind: "XServer".to_owned(),
                plural: "xservers".to_owned(),
                scope: CompositeScope::Namespaced,
            }),
            cloud_tags: true,
            own_provider_config: false,
            composition_name: None,
            surge: false,
            injection_strategy: strategy,
            ..mk_blueprint()
        }),
        provider: Some(Arc::new(provider)),
        ..mk_snapshot(Phase::Pending)
    }
}

fn rendered(snapshot: &ResourceSnapshot, injection: &Injection) -> RenderedComposite {
    composite_of(snapshot, &settings(), injection).unwrap()
}

#[test]
fn a_token_goes_into_user_data() {
    let composite = rendered(&snapshot(InjectionStrategy::CloudInitUserData), &fresh());
    insta::assert_json_snapshot!(composite.expose_object());
}

#[test]
fn a_token_goes_into_helm_values() {
    let composite = rendered(&snapshot(InjectionStrategy::HelmValues), &fresh());
    insta::assert_json_snapshot!(composite.expose_object());
}

#[test]
fn a_token_goes_into_a_provider_secret() {
    let composite = rendered(&snapshot(InjectionStrategy::ProviderSecret), &fresh());
    insta::assert_json_snapshot!(composite.expose_object());
}

#[test]
fn a_kind_of_the_whole_cluster_has_no_namespace() {
    let mut snapshot = snapshot(InjectionStrategy::ProviderSecret);
    let blueprint = Arc::make_mut(&mut snapshot.blueprint);
    blueprint.composite_type.as_mut().unwrap().scope = CompositeScope::Cluster;
    blueprint.mesh_role = MeshRole::Standalone;
    blueprint.parameter_schema = ParameterSchema::default();
    snapshot.attempt = mk_snapshot(Phase::Pending).attempt;
    snapshot.provider = None;
    let composite = rendered(&snapshot, &fresh());
    assert_eq!(composite.namespace(), "slipway-project-x");
    insta::assert_json_snapshot!(composite.expose_object());
}

/// Invariant 10, for each site: injected content is found, recognised by its
/// hash, and written back verbatim, even if somebody added to it.
#[test]
fn what_is_injected_is_taken_over_to_the_letter() {
    let hash = SecretHash::of(TOKEN.as_bytes());
    for strategy in InjectionStrategy::ALL {
        let snapshot = snapshot(*strategy);
        let first = rendered(&snapshot, &fresh());
        let mut live = first.expose_object().clone();
        assert_eq!(carried(&live), Carried::Token { id: id(), hash }, "{strategy}");
        if *strategy == InjectionStrategy::HelmValues {
            live["spec"]["parameters"]["helmValues"]["extra"] = json!({ "a": [1, null] });
        }
        let verbatim = Injection::Verbatim { id: Some(id()), document: injected(&live).unwrap() };
        let again = rendered(&snapshot, &verbatim);
        assert_eq!(again.expose_object(), &live, "{strategy}");
        assert_eq!(again.owned_hash(), first.owned_hash(), "{strategy}");
        assert!(!format!("{verbatim:?} {again:?}").contains("bbbbbbbb"), "{strategy}");
    }
}

#[test]
fn a_default_of_user_data_hides_no_token() {
    let snapshot = snapshot(InjectionStrategy::ProviderSecret);
    let mut live = rendered(&snapshot, &fresh()).expose_object().clone();
    live["spec"]["userData"] = json!("");
    assert!(matches!(carried(&live), Carried::Token { .. }));
    live["spec"]["parameters"]["providerSecret"] = json!({});
    assert_eq!(carried(&live), Carried::Nothing);
    // Content at another site is not this blueprint's: nothing is taken over.
    let document = injected(&live).unwrap();
    let again = rendered(&snapshot, &Injection::Verbatim { id: None, document });
    assert!(again.expose_object()["spec"].get("userData").is_none());
}

#[test]
fn the_owned_hash_is_over_what_we_own() {
    let composite = rendered(&snapshot(InjectionStrategy::HelmValues), &fresh());
    let unchanged: [fn(&mut Value); 5] = [
        |live| live["metadata"]["labels"]["crossplane.io/composite"] = json!("x"),
        |live| live["metadata"]["finalizers"] = json!([]),
        |live| live["spec"]["parameters"]["helmValues"]["apiUrl"] = json!("elsewhere"),
        |live| live["spec"]["crossplane"] = json!({ "compositionRevisionRef": { "name": "x" } }),
        |live| live["status"] = json!({ "conditions": [] }),
    ];
    for change in unchanged {
        let mut live = composite.expose_object().clone();
        change(&mut live);
        assert_eq!(owned_hash(&live), composite.owned_hash(), "{live}");
    }
    let drifted: [fn(&mut Value); 4] = [
        |live| live["metadata"]["labels"]["slipway.dev/project"] = json!("x"),
        |live| live["spec"]["parameters"]["busy_seconds"] = json!(4),
        |live| live["spec"]["cloudTags"] = json!({}),
        |live| live["kind"] = json!("YServer"),
    ];
    for change in drifted {
        let mut live = composite.expose_object().clone();
        change(&mut live);
        assert_ne!(owned_hash(&live), composite.owned_hash(), "{live}");
    }
    let none = json!({ "spec": { "parameters": {}, "cloudTags": {} } });
    assert_eq!(owned_hash(&none), owned_hash(&json!({})));
}

#[test]
fn tags_are_left_out_where_the_definition_has_no_field() {
    let mut snapshot = snapshot(InjectionStrategy::ProviderSecret);
    assert_eq!(cloud_tags(&snapshot).skipped.len(), 1);
    Arc::make_mut(&mut snapshot.blueprint).cloud_tags = false;
    let reasons: Vec<_> = cloud_tags(&snapshot).skipped.iter().map(|label| label.reason).collect();
    assert!(reasons.len() > 1 && reasons.iter().all(|reason| *reason == SkipReason::NoField));
    let composite = rendered(&snapshot, &fresh());
    assert!(composite.expose_object()["spec"].get("cloudTags").is_none());
}

#[test]
fn a_blueprint_that_asks_for_it_gets_the_name_of_the_provider_config() {
    let mut snapshot = snapshot(InjectionStrategy::ProviderSecret);
    let name = |snapshot: &ResourceSnapshot| {
        rendered(snapshot, &fresh()).expose_object()["spec"]["parameters"]["providerConfigName"]
            .clone()
    };
    assert_eq!(name(&snapshot), Value::Null, "only where it is declared");
    let blueprint = Arc::make_mut(&mut snapshot.blueprint);
    let mut parameters = json!(blueprint.parameter_schema);
    let asked = json!({ "name": "providerConfigName", "type": "string", "required": false });
    parameters["parameters"].as_array_mut().unwrap().push(asked);
    blueprint.parameter_schema = serde_json::from_value(parameters).unwrap();
    assert_eq!(name(&snapshot), json!("hetzner"), "published before it could be its own");
    Arc::make_mut(&mut snapshot.blueprint).own_provider_config = true;
    assert_eq!(name(&snapshot), json!("hetzner-00000000000e"));
}

/// In the API version in which Crossplane reads it, and as a field of ours: whoever changes it
/// is taken back.
#[test]
fn a_composite_names_the_composition_of_its_version() {
    let mut snapshot = snapshot(InjectionStrategy::CloudInitUserData);
    let named = |snapshot: &ResourceSnapshot| {
        let object = rendered(snapshot, &fresh()).expose_object().clone();
        object["spec"]["crossplane"].clone()
    };
    assert_eq!(named(&snapshot), Value::Null, "the cluster chooses");
    let before = rendered(&snapshot, &fresh());
    let name = "servers-v1alpha1-000000000001";
    Arc::make_mut(&mut snapshot.blueprint).composition_name = Some(name.to_owned());
    assert_eq!(named(&snapshot), json!({ "compositionRef": { "name": name } }));
    snapshot.read_as = Some("v1alpha1".to_owned());
    assert_eq!(named(&snapshot), json!({ "compositionRef": { "name": name } }));
    let own = rendered(&snapshot, &fresh());
    snapshot.read_as = Some("v2".to_owned());
    let elsewhere = rendered(&snapshot, &fresh());
    let reference = json!({ "compositionRef": { "name": format!("{name}.v2") } });
    assert_eq!(named(&snapshot), reference);
    let hashes = [before.owned_hash(), own.owned_hash(), elsewhere.owned_hash()];
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2], "{hashes:?}");
    let mut live = elsewhere.expose_object().clone();
    live["spec"]["crossplane"]["resourceRefs"] = json!([{ "name": "x" }]);
    assert_eq!(owned_hash(&live), elsewhere.owned_hash(), "the rest is Crossplane's");
}

#[test]
fn what_is_missing_is_named() {
    let helm = snapshot(InjectionStrategy::HelmValues);
    let without = NodeSettings { node_image: None, ..settings() };
    let asked = can_inject(&helm, &without).unwrap_err().to_string();
    let tried = composite_of(&helm, &without, &fresh()).unwrap_err().to_string();
    assert!(asked.contains("node_image") && asked == tried, "{asked}");
    let kept = rendered(&helm, &fresh());
    let document = injected(kept.expose_object()).unwrap();
    let verbatim = Injection::Verbatim { id: None, document };
    assert!(composite_of(&helm, &without, &verbatim).is_ok(), "only a fresh one needs it");

    let mut old = snapshot(InjectionStrategy::HelmValues);
    Arc::make_mut(&mut old.blueprint).composite_type = None;
    let error = composite_of(&old, &settings(), &fresh()).unwrap_err().to_string();
    assert!(error.contains("publish a new version"), "{error}");
}
