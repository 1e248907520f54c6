//! What a server is made from, and what is refused.

use slipway_core::broker::attempt::{ProvisionedResource, StoredAttempt};
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint_version::{BlueprintVersion, Engine};
use slipway_core::catalog::parameters::{ParameterSchema, ParameterValues};
use slipway_core::fixtures::{mk_blueprint, mk_snapshot, mk_stored_attempt};
use slipway_core::ids::InstallationId;
use uuid::Uuid;

use super::*;

fn snapshot(values: Value) -> ResourceSnapshot {
    let schema = json!({
        "type": "object",
        "properties": {
            "server_type": { "type": "string", "default": "cx22" },
            "location": { "type": "string" },
            "image": { "type": "string", "default": "ubuntu-24.04" },
            "fallbacks": { "type": "array", "items": { "type": "string" } },
            "delete_protection": { "type": "boolean", "default": true },
            "ssh_keys": { "type": "array", "items": { "type": "string" } },
        },
    });
    let blueprint = BlueprintVersion {
        engine: Engine::Hetzner,
        parameter_schema: ParameterSchema::read(schema).unwrap(),
        ..mk_blueprint()
    };
    let values = serde_json::from_value(values).unwrap();
    ResourceSnapshot {
        blueprint: blueprint.into(),
        attempt: ProvisionedResource::hydrate(StoredAttempt {
            parameter_values: ParameterValues::from_stored(values),
            ..mk_stored_attempt(Phase::Pending)
        })
        .unwrap(),
        ..mk_snapshot(Phase::Pending)
    }
}

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

fn spec(values: Value) -> Result<ServerSpec, String> {
    let object = owned(&snapshot(values), &settings()).map_err(|error| error.to_string())?;
    ServerSpec::of(&object).map_err(|refusal| refusal.to_string())
}

#[test]
fn what_is_not_declared_comes_from_the_blueprint() {
    let found = spec(json!({ "location": "nbg1", "fallbacks": ["cx32@nbg1", "cx22@nbg1"] }));
    let found = found.unwrap();
    assert_eq!(found.wanted.to_string(), "cx22@nbg1");
    assert!(found.delete_protection);
    let offers: Vec<_> = found.offers().iter().map(ToString::to_string).collect();
    assert_eq!(offers, ["cx22@nbg1", "cx32@nbg1"], "each once");
    let open = spec(json!({ "location": "nbg1", "delete_protection": false })).unwrap();
    assert!(!open.delete_protection);
}

#[test]
fn what_cannot_be_a_server_is_named() {
    for (values, named) in [
        (json!({}), "`location` is missing"),
        (json!({ "location": " " }), "`location` is missing"),
        (json!({ "location": "nbg1", "fallbacks": ["cx32"] }), "`fallbacks` must be a list of <"),
        (json!({ "location": "nbg1", "fallbacks": vec!["a@b"; 9] }), "`fallbacks` has more than 8"),
    ] {
        let error = spec(values.clone()).unwrap_err();
        assert!(error.contains(named), "{values}: {error}");
    }
}

/// A parameter that can be changed in place leaves the hash of what lasts alone.
#[test]
fn what_lasts_is_what_no_write_can_change() {
    let hash = |values| spec(values).unwrap().lasting_hash();
    let usual = hash(json!({ "location": "nbg1" }));
    let changed = json!({ "location": "nbg1", "delete_protection": false, "fallbacks": ["a@b"] });
    assert_eq!(usual, hash(changed));
    for other in [
        json!({ "location": "fsn1" }),
        json!({ "location": "nbg1", "server_type": "cx32" }),
        json!({ "location": "nbg1", "image": "debian-13" }),
        json!({ "location": "nbg1", "ssh_keys": ["ops"] }),
    ] {
        assert_ne!(usual, hash(other.clone()), "{other}");
    }
}
