//! Clusters are served while a control plane runs, each for itself.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use slipway_testkit::kube::{ADMIN, shared};
use slipway_testkit::wait;

use crate::plane::{PATIENCE, Plane};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_served_as_soon_as_it_can_be_reached() {
    let test = "a_cluster_is_served_as_soon_as_it_can_be_reached";
    let Some(kubernetes) = shared(test).await else { return };
    let plane = Plane::start();
    let registered = async |name: &str| {
        let access = format!("kubeconfig/{name}");
        let cluster = json!({ "name": name, "engine": "crossplane", "access": access });
        plane.post("/clusters", &cluster).await
    };
    wait::until(PATIENCE, "the first cluster to be registered", async || registered("away").await)
        .await;
    registered("here").await.unwrap();

    // Nobody listens behind the first one: it is served and stops nobody.
    let config = kubernetes.kubeconfig(ADMIN);
    let nowhere = config.replace(&kubernetes.url(), "https://127.0.0.1:1");
    assert_ne!(nowhere, config, "the address stands in the file");
    std::fs::write(plane.kubeconfig("away"), nowhere).unwrap();
    plane.wait_served("away").await;

    let client = kubernetes.client(ADMIN).await.unwrap();
    let mut system = Namespace::default();
    system.metadata.name = Some("slipway-system".to_owned());
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.create(&PostParams::default(), &system).await.unwrap();
    std::fs::write(plane.kubeconfig("here"), &config).unwrap();
    plane.wait_served("here").await;

    // Its high-water mark is written there, and stays while nothing is done; that
    // it rises is in `the_high_water_mark_rises_after_an_action_and_rests_while_idle`.
    let marks = Api::<ConfigMap>::namespaced(client, "slipway-system");
    let beat = async || {
        let found = marks.list(&ListParams::default()).await.map_err(|e| e.to_string())?;
        let ours = found.items.into_iter().find(|found| {
            let name = found.metadata.name.as_deref().unwrap_or_default();
            name.starts_with("slipway-witness-")
        });
        let beat = ours.and_then(|found| found.data?.get("beat")?.parse::<i64>().ok());
        beat.ok_or_else(|| format!("no mark\n{}", plane.log()))
    };
    let first = wait::until(PATIENCE, "a mark", beat).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(beat().await, Ok(first), "two heartbeats without an action");

    let ready = wait::until(PATIENCE, "readiness", async || plane.get("/readyz").await).await;
    let shown = ready.to_string();
    assert!(shown.contains("here: ") && shown.contains("away: "), "{shown}");
    assert!(plane.stop().await.success());
}
