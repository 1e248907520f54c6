//! Snapshots of the composite, and what it must not reveal.

use std::sync::Arc;

use serde_json::json;
use slipway_core::broker::attempt::{ProvisionedResource, StoredAttempt};
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint_version::MeshRole;
use slipway_core::catalog::parameters::ParameterValues;
use slipway_core::error::ErrorKind;
use slipway_core::fixtures::{mk_snapshot, mk_stored_attempt};
use slipway_core::ids::{BootstrapTokenId, InstallationId};
use slipway_core::nodes::token::{Carried, SecretHash};
use slipway_core::secret::Secret;
use uuid::Uuid;

use super::*;
use crate::composite::{carried, claim_token, injected, installation, owned_hash};

const TOKEN: &str = "psb_live_aaaaaaaaaaaaaaaaaaaaaaaaaa_node_bbbbbbbbbbbbbbbbbbbbbbbb";

fn settings() -> NodeSettings {
    NodeSettings {
        installation: InstallationId::new(Uuid::from_u128(1)),
        public_url: "http://127.0.0.1:7700".to_owned(),
        heartbeat_interval_ms: 1_000,
        orphan_after_ms: 600_000,
        node_image: None,
        authorities: None,
    }
}

fn busy(values: Value) -> ResourceSnapshot {
    let values = serde_json::from_value(values).unwrap();
    ResourceSnapshot {
        attempt: ProvisionedResource::hydrate(StoredAttempt {
            parameter_values: ParameterValues::from_stored(values),
            ..mk_stored_attempt(Phase::Pending)
        })
        .unwrap(),
        ..mk_snapshot(Phase::Pending)
    }
}

fn fresh() -> Injection {
    Injection::Fresh { id: BootstrapTokenId::new(Uuid::from_u128(20)), token: Secret::new(TOKEN) }
}

fn rendered(snapshot: &ResourceSnapshot, injection: &Injection) -> RenderedComposite {
    render(snapshot, "slipway-project-x", &settings(), ClaimToken(3), injection).unwrap()
}

#[test]
fn the_composite_is_what_the_engine_applies() {
    let composite = rendered(&busy(json!({"busy_seconds": 3})), &fresh());
    insta::assert_json_snapshot!(composite.expose_object());
}

#[test]
fn what_is_stamped_can_be_read_back() {
    let object = rendered(&busy(json!({})), &fresh()).expose_object().clone();
    assert_eq!(claim_token(&object), Some(ClaimToken(3)));
    assert_eq!(installation(&object), Some("00000000-0000-0000-0000-000000000001"));
    let expected = Carried::Token {
        id: BootstrapTokenId::new(Uuid::from_u128(20)),
        hash: SecretHash::of(TOKEN.as_bytes()),
    };
    assert_eq!(carried(&object), expected);
}

/// Invariant 10: an apply without a new token leaves the injected field alone.
#[test]
fn injected_values_are_preserved_on_re_apply() {
    let snapshot = busy(json!({"busy_seconds": 3}));
    let first = rendered(&snapshot, &fresh());
    let document = injected(first.expose_object()).unwrap();
    let id = Some(BootstrapTokenId::new(Uuid::from_u128(20)));
    let again = rendered(&snapshot, &Injection::Verbatim { id, document });
    assert_eq!(again.expose_object(), first.expose_object());
}

#[test]
fn the_owned_hash_follows_what_we_own_and_nothing_else() {
    let composite = rendered(&busy(json!({"busy_seconds": 3})), &fresh());
    let mut live = composite.expose_object().clone();
    assert_eq!(owned_hash(&live), composite.owned_hash());
    live["status"] = json!({"ready": true});
    live["metadata"]["annotations"]["other"] = json!("x");
    assert_eq!(owned_hash(&live), composite.owned_hash());
    live["spec"]["parameters"]["busy_seconds"] = json!(4);
    assert_ne!(owned_hash(&live), composite.owned_hash());
}

#[test]
fn stored_values_are_checked_again() {
    let snapshot = busy(json!({"busy_seconds": "long"}));
    let error = render(&snapshot, "ns", &settings(), ClaimToken(3), &fresh()).unwrap_err();
    assert!(
        matches!(error, Error::Parameters(refusal) if refusal.kind == ErrorKind::ParameterValuesInvalid)
    );
}

/// Invariant 9.
#[test]
fn no_secret_in_any_debug_or_error_text() {
    let injection = fresh();
    let good = rendered(&busy(json!({})), &injection);
    let bad =
        render(&busy(json!({"x": 1})), "ns", &settings(), ClaimToken(3), &injection).unwrap_err();
    for text in [format!("{injection:?}"), format!("{good:?}"), format!("{bad:?}"), bad.to_string()]
    {
        assert!(!text.contains("bbbbbbbb"), "{text}");
    }
}

#[test]
fn a_standalone_composite_carries_no_token() {
    let mut snapshot = busy(json!({}));
    Arc::make_mut(&mut snapshot.blueprint).mesh_role = MeshRole::Standalone;
    let object = rendered(&snapshot, &fresh()).expose_object().clone();
    assert!(injected(&object).is_none());
    assert_eq!(carried(&object), Carried::Nothing);
}
