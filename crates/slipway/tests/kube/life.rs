//! A resource comes up and is taken down, in order, on a cluster.

use slipway_standin::AgentMode;

use crate::order;
use crate::stage::Environment;
use crate::world::{PROVIDER, Setup, World};

/// The issue's own measure: in the API server's audit log the DELETE of each
/// composite is later than the node's deregistration and than the agent's own
/// record of its leave.
#[tokio::test(flavor = "multi_thread")]
async fn every_node_leaves_before_its_composite_is_deleted() {
    let test = "every_node_leaves_before_its_composite_is_deleted";
    let setup = Setup { agent: AgentMode::Process, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let mut resources = Vec::new();
    for handle in ["web-1", "web-2", "web-3"] {
        resources.push(world.declare(handle, "").await);
    }
    for id in &resources {
        world.plane.wait_for_phase(id, "Ready").await;
    }
    assert_eq!(world.composites().await.list(&Default::default()).await.unwrap().items.len(), 3);
    let mut names = Vec::new();
    for id in &resources {
        names.push(world.xr_name(id).await);
        world.plane.delete(id).await;
    }
    for (id, name) in resources.iter().zip(&names) {
        let gone = world.plane.wait_for_phase(id, "Deleted").await;
        let deregistered = &gone["node"]["deregistered_at"];
        let records = world.kubernetes.audit().unwrap();
        order::assert_left_first(name, deregistered, &world.journal(), &records, "xservers");
        world
            .plane
            .assert_each_event_once(id, &["Requested", "Ready", "Deleting", "Deleted"])
            .await;
    }
    assert!(world.composites().await.list(&Default::default()).await.unwrap().items.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_of_injection_brings_a_node_up() {
    for (strategy, environment) in [
        ("helm-values", Environment::Shared),
        // A secret alone does not say where the control plane is, so the stand-in must.
        ("provider-secret", Environment::Own),
    ] {
        let setup = Setup { strategy, environment, ..Setup::default() };
        let test = format!("injection_{strategy}");
        let Some(world) = World::start(&test, setup).await else { return };
        let id = world.declare("web-1", "").await;
        world.plane.wait_for_phase(&id, "Ready").await;
        world.plane.assert_goes(&id).await;
    }
}

/// Secrets and ProviderConfigs are removed after their last user, the namespace
/// with the project, and nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_shared_goes_after_the_last_who_needed_it() {
    let test = "what_is_shared_goes_after_the_last_who_needed_it";
    let environment = Environment::Shared;
    let setup = Setup { settings: &["--lease", "3s"], environment, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let (first, second) = (world.declare("web-1", "").await, world.declare("web-2", "").await);
    for id in [&first, &second] {
        world.plane.wait_for_phase(id, "Ready").await;
    }
    let configs = async || {
        let api_version = format!("{PROVIDER}.crossplane.io/v1beta1");
        world.names_of(&api_version, "ProviderConfig", "providerconfigs").await
    };
    let secrets = async || {
        world.names_of("external-secrets.io/v1", "ExternalSecret", "externalsecrets").await.len()
    };
    assert_eq!((configs().await, secrets().await), (vec![PROVIDER.to_owned()], 1));
    world.plane.assert_goes(&first).await;
    assert_eq!((configs().await, secrets().await), (vec![PROVIDER.to_owned()], 1), "one needs it");
    world.plane.assert_goes(&second).await;
    world
        .wait_for_namespace("the provider to be released", |assignment| {
            assignment["providers"] == serde_json::json!([])
        })
        .await;
    slipway_testkit::wait::until(crate::control_plane::TIMEOUT, "all to be gone", async || {
        configs().await.is_empty() && secrets().await == 0
    })
    .await;
    let path = format!("/api/v1/projects/{}/cluster", crate::world::PROJECT);
    let (status, answer) = world.plane.call(reqwest::Method::DELETE, &path, None).await;
    assert_eq!((status, &answer["namespace_phase"]), (202, &"Ready".into()), "{answer}");
    world
        .wait_for_namespace("the namespace to be Deleted", |assignment| {
            assignment["namespace_phase"] == "Deleted"
        })
        .await;
    let (status, answer) = world.plane.call(reqwest::Method::DELETE, &path, None).await;
    assert_eq!(status, 204, "nothing is left to do: {answer}");
}
