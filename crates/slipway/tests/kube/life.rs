//! A resource comes up and is taken down, in order, on a cluster.

use reqwest::Method;
use serde_json::json;
use slipway_standin::AgentMode;
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::order;
use crate::stage::Environment;
use crate::world::{BLUEPRINT, PROJECT, PROVIDER, Setup, World};

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

/// A version that takes the name of its ProviderConfig uses one of its own credential,
/// which is Ready beside the shared one and goes with its last user.
async fn a_second_credential_comes_and_goes(
    world: &World,
    setup: Setup<'_>,
    configs: impl AsyncFn() -> Vec<String>,
    secrets: impl AsyncFn() -> usize,
) {
    world.make_credential("second").await;
    let name = json!({ "name": "providerConfigName", "type": "string", "required": false });
    world.make_blueprint("named", setup, &[name]).await;
    let declare = |blueprint: &str| {
        json!({
            "project": PROJECT, "handle": "web-3", "blueprint": blueprint, "credential": "second",
        })
    };
    let path = "/api/v1/resources";
    let (status, answer) = world.plane.call(Method::POST, path, Some(declare(BLUEPRINT))).await;
    assert_eq!((status, &answer["code"]), (409, &"provider_config_conflict".into()), "{answer}");
    let declared = world.make(path, declare("named")).await;
    let id = declared["id"].as_str().unwrap();
    world.plane.wait_for_phase(id, "Ready").await;
    let assignment = world.assignment().await;
    let [shared, own] = &assignment["providers"].as_array().unwrap()[..] else {
        panic!("two ProviderConfigs: {assignment}")
    };
    for (status, credential) in [(shared, "main"), (own, "second")] {
        assert_eq!(
            (&status["credential"], &status["phase"]),
            (&credential.into(), &"Ready".into())
        );
    }
    assert_eq!(shared["provider_config"], PROVIDER);
    let name = own["provider_config"].as_str().unwrap();
    assert_eq!((configs().await, secrets().await), (vec![PROVIDER.to_owned(), name.to_owned()], 2));
    let composite = world.composites().await.get(&world.xr_name(id).await).await.unwrap();
    assert_eq!(composite.data["spec"]["parameters"]["providerConfigName"], name);
    world.plane.assert_goes(id).await;
    wait::until(TIMEOUT, "the second one to be gone", async || {
        configs().await.len() == 1 && secrets().await == 1
    })
    .await;
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
    a_second_credential_comes_and_goes(&world, setup, configs, secrets).await;
    assert_eq!((configs().await, secrets().await), (vec![PROVIDER.to_owned()], 1), "one needs it");
    world.plane.assert_goes(&second).await;
    world
        .wait_for_namespace("the provider to be released", |assignment| {
            assignment["providers"] == json!([])
        })
        .await;
    wait::until(TIMEOUT, "all to be gone", async || {
        configs().await.is_empty() && secrets().await == 0
    })
    .await;
    let path = format!("/api/v1/projects/{PROJECT}/cluster");
    let (status, answer) = world.plane.call(Method::DELETE, &path, None).await;
    assert_eq!((status, &answer["namespace_phase"]), (202, &"Ready".into()), "{answer}");
    world
        .wait_for_namespace("the namespace to be Deleted", |assignment| {
            assignment["namespace_phase"] == "Deleted"
        })
        .await;
    let (status, answer) = world.plane.call(Method::DELETE, &path, None).await;
    assert_eq!(status, 204, "nothing is left to do: {answer}");
}
