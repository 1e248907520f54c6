//! What people do by hand on the cluster, and what becomes of it.

use kube::api::DeleteParams;
use serde_json::json;

use crate::control_plane::PATIENCE;
use crate::world::{Setup, World};

/// `kubectl delete` of a composite that is wanted waits for the drain of its
/// node; then it goes, and all is made anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_composite_deleted_by_hand_drains_and_comes_back() {
    let test = "a_composite_deleted_by_hand_drains_and_comes_back";
    let Some(world) = World::start(test, Setup::default()).await else { return };
    let id = world.declare("web-1", "").await;
    let ready = world.plane.wait_for_phase(&id, "Ready").await;
    let (node, name) = (ready["node"]["id"].clone(), world.xr_name(&id).await);
    let composites = world.composites().await;
    let before = composites.get(&name).await.unwrap().metadata.uid;
    composites.delete(&name, &DeleteParams::default()).await.unwrap();
    let again = world
        .plane
        .wait_for(&id, "Ready with another node", |seen| {
            seen["phase"] == "Ready" && seen["node"]["id"] != node
        })
        .await;
    let old = world.plane.get(&format!("/api/v1/nodes/{}", node.as_str().unwrap())).await;
    assert_eq!(old["deregistered_how"], json!("acknowledged"), "{old}");
    assert_ne!(composites.get(&name).await.unwrap().metadata.uid, before);
    assert!(again["blockers"].as_array().unwrap().is_empty(), "{again}");
    world.plane.delete(&id).await;
    world.plane.wait_for_phase(&id, "Deleted").await;
}

/// A namespace deleted by hand takes everything in it along, in order, and all
/// of it comes back.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_deleted_by_hand_comes_back_with_what_was_in_it() {
    let test = "a_namespace_deleted_by_hand_comes_back_with_what_was_in_it";
    let Some(world) = World::start(test, Setup::default()).await else { return };
    let id = world.declare("web-1", "").await;
    let ready = world.plane.wait_for_phase(&id, "Ready").await;
    let node = ready["node"]["id"].clone();
    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(world.client.clone());
    let name = world.namespace().await;
    let before = namespaces.get(&name).await.unwrap().metadata.uid;
    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
    world
        .plane
        .wait_for(&id, "Ready with another node", |seen| {
            seen["phase"] == "Ready" && seen["node"]["id"] != node
        })
        .await;
    assert_ne!(namespaces.get(&name).await.unwrap().metadata.uid, before);
}

/// The ProviderConfig is put back at once, and what is Ready stays so.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_config_deleted_by_hand_is_put_back() {
    let test = "a_provider_config_deleted_by_hand_is_put_back";
    let Some(world) = World::start(test, Setup::default()).await else { return };
    let id = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&id, "Ready").await;
    let kind = crate::world::resource(
        "hetzner.crossplane.io/v1beta1",
        "ProviderConfig",
        "providerconfigs",
    );
    let configs = kube::Api::<kube::api::DynamicObject>::namespaced_with(
        world.client.clone(),
        &world.namespace().await,
        &kind,
    );
    let before = configs.get("hetzner").await.unwrap().metadata.uid;
    configs.delete("hetzner", &DeleteParams::default()).await.unwrap();
    slipway_testkit::wait::until(PATIENCE, "the ProviderConfig to be back", async || match configs
        .get("hetzner")
        .await
    {
        Ok(found) if found.metadata.uid != before => Ok(()),
        Ok(_) => Err("the old one".to_owned()),
        Err(error) => Err(error.to_string()),
    })
    .await;
    assert_eq!(world.plane.resource(&id).await["phase"], "Ready");
}
