//! Whatever keeps a resource from advancing on a cluster is shown, as the real
//! binary explains it.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::control_plane::TIMEOUT;
use crate::stage::Environment;
use crate::world::{Setup, World, resource};

/// A secret that External Secrets cannot bring blocks the apply, and the blocker names it.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_is_a_blocker() {
    let test = "a_missing_secret_is_a_blocker";
    let setup = Setup { environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let id = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&id, "Ready").await;
    let kind = resource("external-secrets.io/v1", "ExternalSecret", "externalsecrets");
    let namespace = world.namespace().await;
    let secrets = Api::<DynamicObject>::namespaced_with(world.client.clone(), &namespace, &kind);
    let secret = secrets.list(&Default::default()).await.unwrap().items.remove(0);
    let name = secret.metadata.name.unwrap();
    let missing =
        json!({ "metadata": { "annotations": { "standin.slipway.dev/missing": "true" } } });
    secrets.patch(&name, &PatchParams::default(), &Patch::Merge(&missing)).await.unwrap();
    world
        .wait_for_namespace("the provider to wait", |assignment| {
            assignment["providers"][0]["phase"] == "Waiting"
        })
        .await;
    let held = world.declare("web-2", "").await;
    let blocked = world
        .plane
        .wait_for(&held, "blocked", |seen| seen["blockers"][0]["code"] == "provider_not_ready")
        .await;
    assert_eq!(blocked["phase"], "Pending", "{blocked}");
    let message = blocked["blockers"][0]["message"].as_str().unwrap();
    assert!(message.contains(&name), "{message}");
    let explained = world.plane.explained(&held, &["provider_not_ready"]).await;
    insta::assert_snapshot!("provider_not_ready", explained.replace(&name, "<secret>"));
    let present = json!({ "metadata": { "annotations": { "standin.slipway.dev/missing": null } } });
    secrets.patch(&name, &PatchParams::default(), &Patch::Merge(&present)).await.unwrap();
    world.plane.wait_for_phase(&held, "Ready").await;
}

/// Without events the control plane sends the API server nothing but watches,
/// the lists of sweeps, and an identity check of the cluster every ten minutes.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_control_plane_only_watches_and_lists() {
    let test = "an_idle_control_plane_only_watches_and_lists";
    let setup = Setup { install_definitions: true, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let id = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&id, "Ready").await;
    slipway_testkit::wait::until(TIMEOUT, "quiet sweeps", async || {
        let from = world.kubernetes.audit().unwrap().len();
        tokio::time::sleep(std::time::Duration::from_secs(8)).await;
        let records = world.kubernetes.audit().unwrap();
        let ours = records[from..].iter().filter(|record| record.user == "admin");
        let odd: Vec<_> = ours
            .filter(|record| !["watch", "list"].contains(&&*record.verb))
            .map(|record| format!("{} {}", record.verb, record.uri))
            .collect();
        let identity = |line: &&String| line.starts_with("get /api/v1/namespaces/kube-system");
        let identities = odd.iter().filter(identity).count();
        if odd.len() == identities && identities <= 1 { Ok(()) } else { Err(odd.join("\n")) }
    })
    .await;
}

/// An action raises the high-water mark, and nothing else does.
#[tokio::test(flavor = "multi_thread")]
async fn the_high_water_mark_rises_after_an_action_and_rests_while_idle() {
    let test = "the_high_water_mark_rises_after_an_action_and_rests_while_idle";
    let Some(world) = World::start(test, Setup::default()).await else { return };
    let marks = Api::<ConfigMap>::namespaced(world.client.clone(), "slipway-system");
    let mark = async || {
        let found = marks.list(&Default::default()).await.map_err(|error| error.to_string())?;
        let counters = found.items.into_iter().filter_map(|found| found.data?.remove("heartbeat"));
        let highest = counters.filter_map(|text| text.parse::<i64>().ok()).max();
        highest.ok_or_else(|| "there is no mark".to_owned())
    };
    // Four heartbeats without a raise.
    let resting = async || {
        let before = mark().await?;
        tokio::time::sleep(std::time::Duration::from_secs(8)).await;
        let after = mark().await?;
        if after == before { Ok(after) } else { Err(format!("{before}, then {after}")) }
    };
    let before = slipway_testkit::wait::until(TIMEOUT, "a mark that rests", resting).await;
    let id = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&id, "Ready").await;
    let after = slipway_testkit::wait::until(TIMEOUT, "a mark that rests again", resting).await;
    assert!(after > before, "{after} after {before}");
}

/// A freeze withholds placement actions like resource actions: nothing is made there.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_installation_touches_no_cluster() {
    let test = "a_frozen_installation_touches_no_cluster";
    let setup = Setup { environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    world.plane.says(&["freeze", "--for", "10m", "--reason", "test", "--wait"]);
    world.make("/api/v1/projects", json!({ "name": "late" })).await;
    let path = "/api/v1/projects/late/cluster";
    let assignment = world.put(path, json!({ "cluster": "east" })).await;
    let name = assignment["namespace"].as_str().unwrap();
    slipway_testkit::wait::until(TIMEOUT, "the placement loop to say why it waits", async || {
        let assignment = world.plane.get(path).await;
        let said = assignment["problems"].to_string().contains("frozen");
        if said { Ok(()) } else { Err(assignment.to_string()) }
    })
    .await;
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(world.client.clone());
    assert!(namespaces.get_opt(name).await.unwrap().is_none(), "it was made all the same");
    world.plane.says(&["unfreeze", "--reason", "test"]);
    slipway_testkit::wait::until(TIMEOUT, "the namespace to be Ready", async || {
        let assignment = world.plane.get(path).await;
        if assignment["namespace_phase"] == "Ready" { Ok(()) } else { Err(assignment.to_string()) }
    })
    .await;
}

/// A namespace that is missing in our lists does not count as absent.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_without_our_labels_is_not_taken_for_gone() {
    let test = "a_namespace_without_our_labels_is_not_taken_for_gone";
    let setup = Setup { environment: Environment::Shared, ..Setup::default() };
    let Some(world) = World::start(test, setup).await else { return };
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(world.client.clone());
    let name = world.namespace().await;
    let labels = namespaces.get(&name).await.unwrap().metadata.labels.unwrap();
    let relabel = async |labels: serde_json::Value| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        namespaces.patch(&name, &Default::default(), &patch).await.unwrap();
    };
    let ours = labels.keys().filter(|label| label.starts_with("slipway.dev/"));
    relabel(ours.map(|label| (label.clone(), serde_json::Value::Null)).collect()).await;
    let path = format!("/api/v1/projects/{}/cluster", crate::world::PROJECT);
    let (status, answer) = world.plane.call(reqwest::Method::DELETE, &path, None).await;
    assert_eq!(status, 202, "{answer}");
    let left = |assignment: &serde_json::Value| {
        assignment["namespace_phase"] == "Terminating"
            && assignment["problems"].to_string().contains("labels")
    };
    world.wait_for_namespace("the placement loop to say what it left alone", left).await;
    assert!(namespaces.get_opt(&name).await.unwrap().is_some());

    relabel(json!(labels)).await;
    world
        .wait_for_namespace("the namespace to be Deleted", |assignment| {
            assignment["namespace_phase"] == "Deleted"
        })
        .await;
    assert!(namespaces.get_opt(&name).await.unwrap().is_none());
}
