//! A cluster that is taken away for good: its resources and its project get out, and what it
//! still has when it comes back all the same is found and removed.

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::kube::Part;
use slipway_testkit::wait;

use crate::control_plane::TIMEOUT;
use crate::stage::{Environment, HEARTBEAT};
use crate::world::{Account, PROJECT, Setup, World};

const SETUP: Setup<'_> = Setup {
    agent: slipway_standin::AgentMode::InProcess,
    strategy: "cloud-init-user-data",
    settings: &["--lease", "3s", "--reconcile-interval", "1s", "--orphan-interval", "1s"],
    account: Account::Admin,
    heartbeat: HEARTBEAT,
    install_definitions: false,
    environment: Environment::Own,
};

impl World {
    async fn ask(&self, path: &str, confirm: &str) -> (u16, Value) {
        let body = json!({ "reason": "it burnt down", "confirm": confirm });
        self.plane.call(Method::POST, path, Some(body)).await
    }

    async fn leaks(&self, kind: &str) -> Vec<Value> {
        let leaks = self.plane.get(&format!("/api/v1/leaks?kind={kind}")).await;
        leaks.as_array().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_lost_for_good_is_abandoned() {
    let test = "a_cluster_that_is_lost_for_good_is_abandoned";
    let Some(world) = World::start(test, SETUP).await else { return };
    let drained = world.declare("drained", "").await;
    let working = world.declare("working", "busy").await;
    for id in [&drained, &working] {
        world.plane.wait_for_phase(id, "Ready").await;
    }
    let names = [world.xr_name(&drained).await, world.xr_name(&working).await];
    world.kubernetes.kill(Part::ApiServer).await.unwrap();
    for (id, handle) in [(&drained, "drained"), (&working, "working")] {
        world.wait_blocked(id, "substrate_unknown", "API server").await;
        let path = format!("/api/v1/resources/{id}/abandon");
        let (status, early) = world.ask(&path, handle).await;
        assert_eq!((status, &early["code"]), (409, &json!("not_abandonable")), "{early}");
        world.plane.delete(id).await;
    }
    let left = |seen: &Value| seen["node"]["deregistered_at"].is_string();
    world.plane.wait_for(&drained, "drained", left).await;
    for (id, handle) in [(&drained, "drained"), (&working, "working")] {
        let path = format!("/api/v1/resources/{id}/abandon");
        let gone = wait::until(TIMEOUT, "it to be abandoned", async || {
            let (status, answer) = world.ask(&path, handle).await;
            if status == 200 { Ok(answer) } else { Err(answer.to_string()) }
        })
        .await;
        assert_eq!(gone["phase"], "Deleted", "{gone}");
        assert!(gone["node"]["deregistered_at"].is_string(), "{gone}");
    }
    let composites = world.leaks("abandoned_composite").await;
    assert_eq!(composites.len(), 2, "{composites:?}");
    for leak in &composites {
        assert!(names.iter().any(|name| leak["name"] == **name), "{leak}");
        assert!(leak["uid"].is_string() && leak["cluster"].is_string(), "{leak}");
    }
    assert_eq!(world.leaks("abandoned_node").await.len(), 1, "only one was cut off");

    // The project leaves too, and is placed elsewhere.
    let path = format!("/api/v1/projects/{PROJECT}/cluster");
    let (status, leaving) = world.plane.call(Method::DELETE, &path, None).await;
    assert_eq!(status, 202, "{leaving}");
    let elsewhere = Some(json!({ "cluster": "local" }));
    let (status, stuck) = world.plane.call(Method::PUT, &path, elsewhere.clone()).await;
    assert_eq!(status, 409, "{stuck}");
    wait::until(TIMEOUT, "the placement to be abandoned", async || {
        let (status, answer) = world.ask(&format!("{path}/abandon"), PROJECT).await;
        if status == 200 { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
    let namespaces = world.leaks("abandoned_namespace").await;
    assert!(namespaces[0]["uid"].is_string(), "{namespaces:?}");
    let (status, placed) = world.plane.call(Method::PUT, &path, elsewhere).await;
    assert_eq!(status, 200, "{placed}");

    // It comes back all the same: nothing converges, and what it has is removed on request.
    world.kubernetes.start_part(Part::ApiServer).await.unwrap();
    let found = wait::until(TIMEOUT, "its objects to be found", async || {
        let found = world.leaks("unclaimed_object").await;
        if found.len() == 2 { Ok(found) } else { Err(world.plane.log_tail()) }
    })
    .await;
    for leak in found {
        let path = format!("/api/v1/leaks/{}/remove", leak["id"].as_str().unwrap());
        let body = json!({ "reason": "abandoned" });
        let (status, answer) = world.plane.call(Method::POST, &path, Some(body)).await;
        assert!((200..300).contains(&status), "{answer}");
    }
    wait::until(TIMEOUT, "its objects to be removed", async || {
        let found = world.leaks("unclaimed_object").await;
        if found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    for id in [&drained, &working] {
        assert_eq!(world.plane.resource(id).await["phase"], "Deleted");
    }
}
