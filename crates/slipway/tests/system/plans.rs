//! Plans of deletions, with the real binary on each database.

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

async fn plan(plane: &ControlPlane) -> Value {
    let body = json!({ "kind": "project", "reference": "default", "cascade": true });
    let (status, plan) = plane.call(Method::POST, "/api/v1/deletion-plans", Some(body)).await;
    assert_eq!(status, 201, "{plan}");
    plan
}

/// A plan names the nodes that run, outlives a crash, takes what it read and nothing else,
/// and is one deletion, however often and whenever it is used.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_survives_a_crash_and_takes_what_it_shows() {
    for mut plane in ControlPlane::each("a_plan_survives_a_crash").await {
        plane.start().await;
        let first = plane.declare("web-1", 0).await;
        plane.wait_for_phase(&first, "Ready").await;
        let stale = plan(&plane).await;
        let actions: Vec<_> =
            stale["steps"].as_array().unwrap().iter().map(|step| &step["action"]).collect();
        assert_eq!(
            actions,
            ["drain_nodes", "delete_composites", "mark_deleted", "mark_deleted"],
            "{stale}"
        );
        plane.kill();
        plane.start().await;
        let use_plan = async |plan: &Value| {
            let id = plan["id"].as_str().unwrap();
            let path = format!("/api/v1/projects/default?cascade=true&plan={id}");
            plane.call(Method::DELETE, &path, None).await
        };
        let second = plane.declare("web-2", 0).await;
        let (status, refused) = use_plan(&stale).await;
        assert_eq!((status, &refused["code"]), (409, &json!("plan_stale")), "{refused}");
        assert_eq!(refused["details"]["added"][0]["name"], "web-2", "{refused}");
        plane.wait_for_phase(&second, "Ready").await;

        let good = plan(&plane).await;
        let (one, other) = tokio::join!(use_plan(&good), use_plan(&good));
        assert_eq!((one.0, other.0), (200, 200), "{one:?} {other:?}");
        assert_eq!(one.1["id"], other.1["id"], "two uses at once are one deletion");
        plane.kill();
        plane.start().await;
        let path = format!("/api/v1/deletions/{}", one.1["id"].as_str().unwrap());
        wait::until(TIMEOUT, "the deletion to be done", async || {
            let found = plane.get(&path).await;
            if found["state"] == "done" { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
        assert!(plane.agents().is_empty());
        let used = format!("/api/v1/deletion-plans/{}", good["id"].as_str().unwrap());
        assert_eq!(plane.get(&used).await["used_by"], one.1["id"]);
        plane.stop().await;
    }
}
