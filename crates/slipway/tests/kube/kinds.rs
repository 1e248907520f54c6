//! A kind is removed while composites of it exist. Kubernetes deletes them all;
//! our finalizer holds each until its node has left. Then they are gone, and
//! yet nothing is concluded before the kind is back: a missing kind proves
//! nothing.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::blueprint;
use crate::cast::Cast;
use crate::control_plane::TIMEOUT;
use crate::stage;
use crate::world::{Setup, World, resource};

const NAME: &str = "xservers.tests.slipway.dev";

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_removed_deletes_nothing_and_makes_nothing_on_the_sly() {
    let test = "a_kind_that_is_removed_deletes_nothing_and_makes_nothing_on_the_sly";
    let settings = &["--deregistering-deadline", "10m"];
    let Some(world) = World::start(test, Setup { settings, ..Setup::default() }).await else {
        return;
    };
    let cast = Cast::gather(&world, "kind").await;
    let node = world.plane.resource(&cast.ready).await["node"]["id"].clone();
    let kinds = Api::<CustomResourceDefinition>::all(world.hand().await);
    kinds.delete(NAME, &DeleteParams::default()).await.unwrap();

    // The kind is terminating for as long as one of its composites exists.
    let gone = [&cast.provisioning, &cast.enrolling, &cast.ready];
    for (id, phase) in gone.into_iter().zip(["Provisioning", "Enrolling", "Ready"]) {
        let seen = world.wait_blocked(id, "substrate_unknown", "is being removed").await;
        assert_eq!(seen["phase"], phase, "{seen}");
    }
    let old = world.plane.get(&format!("/api/v1/nodes/{}", node.as_str().unwrap())).await;
    assert_eq!(old["deregistered_how"], "acknowledged", "{old}");
    for (id, phase) in cast.all() {
        let seen = world.plane.resource(id).await;
        assert_eq!(seen["phase"], phase, "{seen}");
    }
    let composites = world.composites().await;
    let left = composites.list(&Default::default()).await.unwrap().items;
    assert_eq!(left.len(), 2, "one waits for its node, one for Crossplane: {left:?}");

    // Then the kind is gone, and a resource deleted meanwhile is not Deleted either.
    world.plane.delete(&cast.provisioning).await;
    for (id, word) in [(&cast.deregistering, "busy"), (&cast.deprovisioning, "keep-finalizer")] {
        world.tell(id, word, "false").await;
    }
    wait::until(TIMEOUT, "the kind to be gone", async || {
        kinds.get_opt(NAME).await.unwrap().is_none()
    })
    .await;
    let late = world.declare("late", "").await;
    let phases = [
        (&cast.provisioning, "Deregistering"),
        (&cast.enrolling, "Enrolling"),
        (&cast.ready, "Ready"),
        (&cast.deregistering, "Deprovisioning"),
        (&cast.deprovisioning, "Deprovisioning"),
        (&late, "Pending"),
    ];
    for (id, phase) in phases {
        let seen = world.wait_blocked(id, "substrate_unknown", "does not know this kind").await;
        assert_eq!(seen["phase"], phase, "{seen}");
    }
    let explained = world.plane.says(&["explain", "resource", &cast.ready]);
    assert!(explained.contains("does not know this kind"), "{explained}");
    assert_eq!(world.plane.resource(&cast.failed).await["phase"], "Failed");

    // The kind is back: wanted composites are made again, visibly, and the
    // others are Deleted.
    touch_definition(&world).await;
    for id in [&cast.provisioning, &cast.deregistering, &cast.deprovisioning] {
        world.plane.wait_for_phase(id, "Deleted").await;
        assert_eq!(world.made(&world.xr_name(id).await), 1);
    }
    world.tell(&cast.enrolling, "no-node", "false").await;
    for (id, made) in [(&cast.enrolling, 2), (&cast.ready, 2), (&late, 1)] {
        world.wait_well(id).await;
        assert_eq!(world.made(&world.xr_name(id).await), made);
    }
    let walk = world.walk(&cast.ready).await;
    assert_eq!(walk.iter().filter(|phase| *phase == "Ready").count(), 2, "{walk:?}");

    // The same through the definition, as Crossplane would do it.
    definitions(&world).await.delete(NAME, &DeleteParams::default()).await.unwrap();
    let seen = world.wait_blocked(&late, "substrate_unknown", "does not know this kind").await;
    assert_eq!(seen["phase"], "Ready", "{seen}");
    stage::define(&world.client, &blueprint::definition("XServer")).await;
    world.tell(&cast.enrolling, "no-node", "false").await;
    for id in [&cast.enrolling, &cast.ready, &late] {
        world.wait_well(id).await;
    }
    for id in [&cast.enrolling, &cast.ready, &late, &cast.failed] {
        world.plane.delete(id).await;
    }
    for id in [&cast.enrolling, &cast.ready, &late, &cast.failed] {
        world.plane.wait_for_phase(id, "Deleted").await;
    }
    world.assert_nothing_left().await;
}

async fn definitions(world: &World) -> Api<DynamicObject> {
    let kind = resource(
        "apiextensions.crossplane.io/v2",
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
    );
    Api::all_with(world.hand().await, &kind)
}

/// The stand-in makes a kind again when its definition changes.
async fn touch_definition(world: &World) {
    let patch: Value = json!({ "metadata": { "annotations": { "tests/touched": "true" } } });
    let definitions = definitions(world).await;
    definitions.patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}
