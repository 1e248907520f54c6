//! Each cluster is served on its own while a control plane runs.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use reqwest::Method;
use serde_json::json;
use slipway_testkit::kube::ADMIN;
use slipway_testkit::wait;

use crate::control_plane::ControlPlane;
use crate::stage::Stage;

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
    plane.stop().await;
}
