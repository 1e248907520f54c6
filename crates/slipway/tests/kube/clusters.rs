//! Each cluster is served on its own while a control plane runs.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use reqwest::Method;
use serde_json::json;
use slipway_testkit::kube::ADMIN;
use slipway_testkit::wait;

use crate::control_plane::ControlPlane;
use crate::stage::{Environment, Stage};
use crate::world::{CLUSTER, PROJECT, Setup, World};

/// Seconds on an idle machine; the rest is for a busy one.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a loop over the resources of this cluster has run.
async fn wait_served(plane: &ControlPlane, cluster: &str) {
    let name = format!("resources/{cluster}");
    wait::until(TIMEOUT, &format!("cluster {cluster} to be served"), async || {
        let served = activations(plane, &name).await > Some(0);
        if served { Ok(()) } else { Err(plane.log_text()) }
    })
    .await;
}

/// Activations of this loop; `None` if the control plane has no such loop.
async fn activations(plane: &ControlPlane, name: &str) -> Option<u64> {
    let loops = plane.get("/api/v1/loops").await;
    let found = loops.as_array().into_iter().flatten().find(|one| one["name"] == *name);
    found.and_then(|one| one["activations"].as_u64())
}

/// The name of its high-water mark, which is the same on every substrate.
fn mark_of(plane: &ControlPlane) -> Option<String> {
    let files = std::fs::read_dir(plane.substrate_root()).ok()?;
    let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names.find(|name| name.starts_with("slipway-high-water-mark-"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_served_as_soon_as_it_can_be_reached() {
    let test = "a_cluster_is_served_as_soon_as_it_can_be_reached";
    let Some(Stage { kubernetes, client, .. }) = Stage::shared(test).await else { return };
    let kubeconfigs = tempfile::tempdir().unwrap();
    let mut plane = ControlPlane::new(None);
    plane.set(&["--kubeconfig-dir", kubeconfigs.path().to_str().unwrap()]);
    plane.start().await;
    for name in ["away", "here"] {
        let access = format!("kubeconfig/{name}");
        let cluster = json!({ "name": name, "engine": "crossplane", "access": access });
        let (status, answer) = plane.call(Method::POST, "/api/v1/clusters", Some(cluster)).await;
        assert!((200..300).contains(&status), "{status}: {answer}");
    }

    // Nothing listens behind the first one: it is served and delays no other.
    let config = kubernetes.kubeconfig(ADMIN);
    let nowhere = config.replace(&kubernetes.url(), "https://127.0.0.1:1");
    assert_ne!(nowhere, config, "the address stands in the file");
    std::fs::write(kubeconfigs.path().join("away"), nowhere).unwrap();
    wait_served(&plane, "away").await;

    std::fs::write(kubeconfigs.path().join("here"), &config).unwrap();
    wait_served(&plane, "here").await;

    // Its high-water mark is written there, and stays the same while nothing is
    // done; `the_high_water_mark_rises_after_an_action_and_rests_while_idle`
    // shows the rise.
    let marks = Api::<ConfigMap>::namespaced(client, "slipway-system");
    let heartbeat = async || {
        let name = mark_of(&plane).ok_or("no high-water mark on the local engine")?;
        let ours = marks.get(&name).await.map_err(|error| error.to_string())?;
        let heartbeat = ours.data.and_then(|data| data.get("heartbeat")?.parse::<i64>().ok());
        heartbeat.ok_or_else(|| format!("no mark\n{}", plane.log_text()))
    };
    let first = wait::until(TIMEOUT, "a mark", heartbeat).await;
    // The heartbeat loop fails while one cluster is away, but the replica is seen.
    let seen_at = async || plane.get("/api/v1/control").await["replicas"][0]["seen_at"].clone();
    let mut seen = vec![seen_at().await];
    while seen.len() < 3 {
        let next = wait::until(TIMEOUT, "a heartbeat", async || match seen_at().await {
            now if seen.last() != Some(&now) => Ok(now),
            now => Err(format!("still {now}")),
        })
        .await;
        seen.push(next);
    }
    assert_eq!(heartbeat().await, Ok(first), "two heartbeats without an action");

    let shown = wait::until(TIMEOUT, "readiness", async || match plane.readiness().await {
        (200, text) => Ok(text),
        (_, text) => Err(text),
    })
    .await;
    assert!(shown.contains("here: ") && shown.contains("away: "), "{shown}");

    // Nobody compares the mark of a cluster that was lost and then deleted.
    let problem = async || {
        let loops = plane.get("/api/v1/loops").await;
        let found = loops.as_array().unwrap().iter().find(|one| one["name"] == "heartbeat");
        found.unwrap()["last_error"].as_str().map(str::to_owned)
    };
    let away = wait::until(TIMEOUT, "a failed heartbeat", async || problem().await).await;
    assert!(away.contains("cluster away"), "{away}");
    let (status, deleted) = plane.call(Method::DELETE, "/api/v1/clusters/away", None).await;
    assert_eq!(status, 200, "{deleted}");
    wait::until(TIMEOUT, "heartbeats without it", async || match problem().await {
        Some(problem) => Err(problem),
        None => Ok(()),
    })
    .await;
    plane.stop().await;
}

/// The prefix of the configuration is that of every cluster. Another access is taken
/// over while the control plane runs; a cluster is deleted once nothing is placed on it,
/// and is not served any more.
#[tokio::test(flavor = "multi_thread")]
async fn another_access_is_taken_over_and_an_empty_cluster_is_deleted() {
    let environment = Environment::Shared;
    let settings = &["--namespace-prefix", "tests-", "--lease", "3s"];
    let setup = Setup { settings, environment, ..Setup::default() };
    let Some(world) = World::start("another_access", setup).await else { return };
    assert!(world.namespace().await.starts_with("tests-"));
    let path = format!("/api/v1/clusters/{CLUSTER}");
    let moved = world.kubeconfig_file().with_file_name("moved");
    std::fs::copy(world.kubeconfig_file(), &moved).unwrap();
    let body = json!({ "access": "kubeconfig/moved" });
    let (status, answer) = world.plane.call(Method::PATCH, &path, Some(body)).await;
    assert_eq!(status, 200, "{answer}");
    wait::until(TIMEOUT, "the other access", async || {
        world.plane.log_text().contains("a cluster is reached by another access")
    })
    .await;
    std::fs::remove_file(world.kubeconfig_file()).unwrap();
    let id = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&id, "Ready").await;

    let (status, refused) = world.plane.call(Method::DELETE, &path, None).await;
    assert_eq!((status, &refused["code"]), (409, &json!("cluster_in_use")), "{refused}");
    world.plane.assert_goes(&id).await;
    let place = format!("/api/v1/projects/{PROJECT}/cluster");
    wait::until(TIMEOUT, "the project to leave", async || {
        let (status, answer) = world.plane.call(Method::DELETE, &place, None).await;
        if status == 204 { Ok(()) } else { Err(format!("{status} {answer}")) }
    })
    .await;
    let (status, deleted) = world.plane.call(Method::DELETE, &path, None).await;
    assert_eq!((status, &deleted["state"]), (200, &json!("done")), "{deleted}");
    wait::until(TIMEOUT, "it is served no longer", async || {
        let (_, ready) = world.plane.readiness().await;
        if ready.contains(CLUSTER) { Err(ready) } else { Ok(()) }
    })
    .await;
}
