//! Requests of the control plane that land after it gave them up.

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};
use slipway_testkit::kube::{ADMIN, Fault, FaultProxy, Rule};
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::stage::Environment;
use crate::world::{PROVIDER, Setup, World, resource};

const SETUP: Setup<'_> = Setup {
    agent: slipway_standin::AgentMode::InProcess,
    strategy: "cloud-init-user-data",
    settings: &["--lease", "3s"],
    account: crate::world::Account::Admin,
    heartbeat: crate::stage::HEARTBEAT,
    install_definitions: false,
    environment: Environment::Shared,
};

/// Leads the control plane through a proxy.
async fn redirect(world: &World) -> FaultProxy {
    let proxy = FaultProxy::before(&world.kubernetes).await;
    let kubeconfig = proxy.redirect(&world.kubernetes.kubeconfig(ADMIN));
    std::fs::write(world.kubeconfig_file(), kubeconfig).unwrap();
    wait::until(TIMEOUT, "the control plane to use the proxy", async || {
        !proxy.exchanges().is_empty()
    })
    .await;
    proxy
}

/// What the server answered to the requests that were held.
fn answers(proxy: &FaultProxy) -> Vec<u16> {
    let exchanges = proxy.exchanges();
    let held = exchanges.iter().filter(|one| one.fault == Some(Fault::CutThenHold));
    held.flat_map(|one| one.statuses()).collect()
}

/// The delete of a ProviderConfig is sent and its answer lost; somebody declares;
/// the delete lands when the ProviderConfig is in use again.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_delete_does_not_hit_a_provider_config_in_use() {
    let test = "a_late_delete_does_not_hit_a_provider_config_in_use";
    let Some(world) = World::start(test, SETUP).await else { return };
    let proxy = redirect(&world).await;
    let first = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&first, "Ready").await;
    for plural in ["/providerconfigs/", "/externalsecrets/"] {
        proxy.add(Rule::new(Fault::CutThenHold).method("DELETE").path(plural));
    }
    world.plane.delete(&first).await;
    world.plane.wait_for_phase(&first, "Deleted").await;
    wait::until(TIMEOUT, "the delete to be sent", async || proxy.waiting() > 0).await;

    let second = world.declare("web-2", "").await;
    world.plane.wait_for_phase(&second, "Ready").await;
    proxy.clear();
    let landed = proxy.release().await;
    let answers = answers(&proxy);
    assert_eq!(answers.len(), landed);
    assert!(answers.iter().all(|answer| *answer == 409), "{answers:?}");

    let kind =
        resource(&format!("{PROVIDER}.crossplane.io/v1beta1"), "ProviderConfig", "providerconfigs");
    let namespace = world.namespace().await;
    let configs = Api::<DynamicObject>::namespaced_with(world.client.clone(), &namespace, &kind);
    let config = configs.get(PROVIDER).await.unwrap();
    assert!(config.metadata.deletion_timestamp.is_none(), "{config:?}");
    let taken_back = &config.metadata.annotations.unwrap()["slipway.dev/removals-taken-back"];
    // Every removal that was sent counts, also one that was repeated.
    assert!(taken_back.parse::<u64>().is_ok_and(|count| count >= 1), "{taken_back}");
    assert_eq!(world.plane.resource(&second).await["phase"], "Ready");
    // And it goes after its last user all the same.
    world.plane.assert_goes(&second).await;
    world
        .wait_for_namespace("the provider to be released", |assignment| {
            assignment["providers"] == json!([])
        })
        .await;
}

/// The answer to the first create is lost, the next claim mints another token.
/// Whether the first create lands before or after the second, the node enrols.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_create_costs_no_token() {
    let test = "a_late_create_costs_no_token";
    let Some(world) = World::start(test, SETUP).await else { return };
    let proxy = redirect(&world).await;
    // The placement is ready before the faults begin.
    let ready = world.declare("web-0", "").await;
    world.plane.wait_for_phase(&ready, "Ready").await;

    let hold = || Rule::new(Fault::CutThenHold).method("PATCH").path("/xservers/").times(1);
    proxy.add(hold());
    let after = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&after, "Ready").await;
    assert_eq!((proxy.release().await, answers(&proxy)), (1, vec![409]));
    world.assert_token_in_place(&after).await;

    // The second create waits until the first has landed.
    proxy.add(hold());
    proxy.add(Rule::new(Fault::Hold).method("PATCH").path("/xservers/").times(1));
    let before = world.declare("web-2", "").await;
    wait::until(TIMEOUT, "both creates to be held", async || proxy.waiting() == 2).await;
    proxy.release().await;
    world.plane.wait_for_phase(&before, "Ready").await;
    assert_eq!(answers(&proxy), [409, 201]);
    world.assert_token_in_place(&before).await;
}

/// Nobody answered a create, and nobody can tell whether it lands. A freeze is not
/// settled meanwhile, also not after the control plane was killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_waits_for_a_request_without_an_answer() {
    let test = "a_freeze_waits_for_a_request_without_an_answer";
    let Some(mut world) = World::start(test, SETUP).await else { return };
    let proxy = redirect(&world).await;
    let ready = world.declare("web-0", "").await;
    world.plane.wait_for_phase(&ready, "Ready").await;
    world.plane.says(&["freeze", "--for", "10m", "--reason", "test", "--wait"]);
    world.plane.says(&["unfreeze", "--reason", "test"]);

    proxy.add(Rule::new(Fault::CutThenHold).method("PATCH").path("/xservers/").times(1));
    let id = world.declare("web-1", "").await;
    wait::until(TIMEOUT, "the create to be held", async || proxy.waiting() == 1).await;
    world.plane.says(&["freeze", "--for", "10m", "--reason", "test"]);
    let blocked = |resource: &Value| resource["blockers"].to_string().contains("frozen");
    world.plane.wait_for(&id, "the action to be given up", blocked).await;
    world.assert_not_settled_after_heartbeats().await;
    world.plane.kill();
    world.plane.start().await;
    world.assert_not_settled_after_heartbeats().await;
    // It lands, and nobody was told that nothing follows.
    assert_eq!((proxy.release().await, answers(&proxy)), (1, vec![201]));
}

impl World {
    /// Asserts that no heartbeat of the only replica acknowledges the freeze.
    async fn assert_not_settled_after_heartbeats(&self) {
        let mut seen = std::collections::BTreeSet::new();
        wait::until(TIMEOUT, "three heartbeats", async || {
            let control = self.plane.get("/api/v1/control").await;
            assert_eq!(control["settled"], false, "{control}");
            assert_eq!(control["replicas"].as_array().map(Vec::len), Some(1), "{control}");
            seen.insert(control["replicas"][0]["seen_at"].to_string());
            seen.len() > 3
        })
        .await;
    }

    /// Asserts that the object carries the token that its node enrolled with.
    async fn assert_token_in_place(&self, id: &str) {
        let name = self.xr_name(id).await;
        let object = self.composites().await.get(&name).await.unwrap();
        let carried = &object.metadata.annotations.unwrap()["slipway.dev/bootstrap-token-id"];
        let tokens = self.plane.get(&format!("/api/v1/resources/{id}/tokens")).await;
        let consumed = |token: &&Value| token["state"] == "consumed";
        let tokens = tokens.as_array().unwrap();
        let used = tokens.iter().find(consumed).unwrap_or_else(|| panic!("{tokens:?}"));
        assert_eq!(used["token_id"], *carried, "{tokens:?}");
    }
}
