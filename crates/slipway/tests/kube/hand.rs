//! Manual changes on the cluster, and their consequences.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;
use slipway_testkit::wait;

use crate::cast::Cast;
use crate::control_plane::TIMEOUT;
use crate::world::{Setup, World, resource};

/// `kubectl delete` of a composite, a ProviderConfig and a namespace, with a
/// resource in every phase: wanted resources are drained, removed and made
/// again; nothing is stuck, nothing is left behind, nothing is Deleted without
/// proof.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_by_hand_in_any_phase_is_let_go_in_order() {
    let test = "what_is_deleted_by_hand_in_any_phase_is_let_go_in_order";
    let settings = &["--deregistering-deadline", "10m"];
    let Some(world) = World::start(test, Setup { settings, ..Setup::default() }).await else {
        return;
    };
    composites_go(&world).await;
    let cast = Cast::gather(&world, "place").await;
    let pending = provider_configs_go(&world, &cast).await;
    namespace_goes(&world, &cast, &pending).await;
    leave(&world, &[&cast.provisioning, &cast.enrolling, &cast.ready, &cast.failed, &pending])
        .await;
    world.assert_nothing_left().await;
}

async fn leave(world: &World, ids: &[&String]) {
    for id in ids {
        world.plane.delete(id).await;
    }
    for id in ids {
        world.plane.wait_for_phase(id, "Deleted").await;
    }
}

async fn composites_go(world: &World) {
    let cast = Cast::gather(world, "composite").await;
    let composites = world.composites().await;
    let hand = by_hand(world).await;
    let node = world.plane.resource(&cast.ready).await["node"]["id"].clone();
    let mut uids = Vec::new();
    for (id, _) in cast.all() {
        let name = world.xr_name(id).await;
        uids.push(composites.get(&name).await.unwrap().metadata.uid);
        hand.delete(&name, &DeleteParams::default()).await.unwrap();
    }
    for ((id, phase), uid) in cast.all().into_iter().zip(&uids).take(3) {
        let name = world.xr_name(id).await;
        wait::until(TIMEOUT, &format!("another composite of {id}, which is {phase}"), async || {
            let found = composites.get(&name).await.map_err(|error| error.to_string())?;
            if found.metadata.uid != *uid { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
        wait::until(TIMEOUT, "that it was made again", async || match world.made(&name) {
            2 => Ok(()),
            made => Err(format!("made {made} times")),
        })
        .await;
        world
            .plane
            .wait_for(id, phase, |seen| {
                seen["phase"] == phase && (phase != "Ready" || seen["node"]["id"] != node)
            })
            .await;
    }
    let old = world.plane.get(&format!("/api/v1/nodes/{}", node.as_str().unwrap())).await;
    assert_eq!(old["deregistered_how"], "acknowledged", "{old}");
    // Failed is final; a composite that somebody deletes goes all the same.
    let name = world.xr_name(&cast.failed).await;
    wait::until(TIMEOUT, "the failed composite to go", async || {
        let found = composites.get_opt(&name).await.unwrap();
        found.map_or(Ok(()), |found| Err(format!("{:?}", found.metadata)))
    })
    .await;
    // These wait as before: one for its node, one for Crossplane.
    for id in [&cast.deregistering, &cast.deprovisioning] {
        let found = composites.get(&world.xr_name(id).await).await.unwrap().metadata;
        assert!(found.deletion_timestamp.is_some(), "{found:?}");
        let held = found.finalizers.unwrap().contains(&"slipway.dev/drain".to_owned());
        assert_eq!(held, *id == cast.deregistering);
    }
    cast.wait_until_placed(world).await;
    cast.release(world).await;
    cast.wait_released(world).await;
    for id in [&cast.ready, &cast.deregistering, &cast.deprovisioning] {
        world.assert_drained_before_it_stopped(&world.xr_name(id).await);
    }
    assert_eq!(world.plane.resource(&cast.failed).await["phase"], "Failed");
    leave(world, &[&cast.provisioning, &cast.enrolling, &cast.ready, &cast.failed]).await;
}

/// Returns a resource that is Pending because its secret is missing.
async fn provider_configs_go(world: &World, cast: &Cast) -> String {
    let namespace = world.namespace().await;
    let hand = world.hand().await;
    let kind = resource("external-secrets.io/v1", "ExternalSecret", "externalsecrets");
    let secrets = Api::<DynamicObject>::namespaced_with(hand.clone(), &namespace, &kind);
    let kind = resource("hetzner.crossplane.io/v1beta1", "ProviderConfig", "providerconfigs");
    let configs = Api::<DynamicObject>::namespaced_with(hand, &namespace, &kind);
    let deleted = async || {
        let before = configs.get("hetzner").await.unwrap().metadata.uid;
        configs.delete("hetzner", &DeleteParams::default()).await.unwrap();
        wait::until(TIMEOUT, "the ProviderConfig to be back", async || {
            let found = configs.get("hetzner").await.map_err(|error| error.to_string())?;
            if found.metadata.uid != before { Ok(()) } else { Err("the old one".to_owned()) }
        })
        .await;
    };
    deleted().await;
    let secret = secrets.list(&Default::default()).await.unwrap().items.remove(0);
    let missing =
        json!({ "metadata": { "annotations": { "standin.slipway.dev/missing": "true" } } });
    let name = secret.metadata.name.unwrap();
    secrets.patch(&name, &PatchParams::default(), &Patch::Merge(&missing)).await.unwrap();
    world
        .wait_for_namespace("the provider to wait", |assignment| {
            assignment["providers"][0]["phase"] == "Waiting"
        })
        .await;
    let pending = world.declare("pending", "").await;
    world.wait_blocked(&pending, "provider_not_ready", &name).await;
    deleted().await;
    for (id, phase) in cast.all().into_iter().chain([(&pending, "Pending")]) {
        let seen = world.plane.resource(id).await;
        assert_eq!(seen["phase"], phase, "{seen}");
        assert_eq!(world.made(&world.xr_name(id).await), usize::from(*id != pending));
    }
    pending
}

async fn namespace_goes(world: &World, cast: &Cast, pending: &str) {
    let namespaces = Api::<Namespace>::all(world.hand().await);
    let name = world.namespace().await;
    let before = namespaces.get(&name).await.unwrap().metadata.uid;
    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
    let wanted = [&cast.provisioning, &cast.enrolling, &cast.ready];
    for id in wanted.into_iter().map(String::as_str).chain([pending]) {
        world.plane.wait_for_phase(id, "Pending").await;
        let why = "is being deleted by somebody else";
        let seen = world.wait_blocked(id, "namespace_not_ready", why).await;
        assert_eq!(seen["phase"], "Pending", "{seen}");
    }
    // The one that waits for its node and the one that Crossplane keeps hold
    // the namespace, and nothing else does.
    let left = async || {
        let left = world.composites().await.list(&Default::default()).await.unwrap().items;
        left.into_iter().map(|found| found.metadata.name.unwrap()).collect::<Vec<_>>()
    };
    let mut holding =
        vec![world.xr_name(&cast.deregistering).await, world.xr_name(&cast.deprovisioning).await];
    holding.sort();
    wait::until(TIMEOUT, "only those two to be left", async || {
        let mut left = left().await;
        left.sort();
        if left == holding { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    for (id, phase) in [
        (&cast.deregistering, "Deregistering"),
        (&cast.deprovisioning, "Deprovisioning"),
        (&cast.failed, "Failed"),
    ] {
        assert_eq!(world.plane.resource(id).await["phase"], phase);
    }
    assert_eq!(namespaces.get(&name).await.unwrap().metadata.uid, before);
    cast.release(world).await;
    cast.wait_released(world).await;
    world.wait_well(pending).await;
    assert_ne!(namespaces.get(&name).await.unwrap().metadata.uid, before);
    assert_eq!(world.made(&world.xr_name(pending).await), 1);
    for id in [&cast.deregistering, &cast.deprovisioning, &cast.ready] {
        world.assert_drained_before_it_stopped(&world.xr_name(id).await);
    }
}

/// The composites, through another user.
async fn by_hand(world: &World) -> Api<DynamicObject> {
    let kind = resource("tests.slipway.dev/v1", "XServer", "xservers");
    Api::namespaced_with(world.hand().await, &world.namespace().await, &kind)
}
