//! Freezes the whole installation, on each database.

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::process::Signal;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT, client};

const FREEZE: &str = "/api/v1/control/freeze";

async fn freeze(plane: &ControlPlane, seconds: u64) -> Value {
    let body = json!({ "reason": "a storm", "for_seconds": seconds });
    let (status, control) = plane.call(Method::PUT, FREEZE, Some(body)).await;
    assert_eq!(status, 200, "{control}");
    assert_eq!(control["mode"], "frozen");
    control
}

async fn until_settled(plane: &ControlPlane) -> Value {
    wait::until(TIMEOUT, "every replica to obey", async || {
        let control = plane.get("/api/v1/control").await;
        if control["settled"] == true { Ok(control) } else { Err(control.to_string()) }
    })
    .await
}

fn blocker<'a>(resource: &'a Value, code: &str) -> Option<&'a Value> {
    resource["blockers"].as_array().unwrap().iter().find(|blocker| blocker["code"] == code)
}

#[tokio::test(flavor = "multi_thread")]
async fn while_frozen_nothing_moves_and_afterwards_everything_does() {
    for mut plane in ControlPlane::each("while_frozen_nothing_moves").await {
        plane.start().await;
        let leaving = plane.declare("leaving", 0).await;
        let lasting = plane.declare("lasting", 0).await;
        plane.wait_for_phase(&leaving, "Ready").await;
        plane.wait_for_phase(&lasting, "Ready").await;
        let before: Vec<_> = plane.agents().iter().map(|agent| agent.pid).collect();

        freeze(&plane, 3_600).await;
        until_settled(&plane).await;
        // Declarations and deletions are accepted, and wait.
        let coming = plane.declare("coming", 0).await;
        plane.delete(&leaving).await;
        for (id, phase, action) in
            [(&coming, "Pending", "apply"), (&leaving, "Deregistering", "drain")]
        {
            let waiting = plane
                .wait_for(id, "frozen", |resource| blocker(resource, "frozen").is_some())
                .await;
            assert_eq!(waiting["phase"], phase, "{waiting}");
            let frozen = blocker(&waiting, "frozen").unwrap();
            assert_eq!(frozen["evidence"]["action"], action);
            assert_eq!(frozen["evidence"]["by"], "key:admin");
            assert_eq!(frozen["evidence"]["reason"], "a storm");
            assert!(frozen["evidence"]["until"].is_string());
            assert_eq!(frozen["remedies"][0]["command"], "slipway unfreeze --reason <why>");
        }
        let withheld = plane.get("/api/v1/control/withheld").await;
        let planned = |handle: &str| {
            let lines = withheld.as_array().unwrap().iter();
            lines.filter(|line| line["handle"] == handle).map(|line| line["action"].clone()).next()
        };
        assert_eq!(planned("coming"), Some(json!("apply")), "{withheld}");
        assert_eq!(planned("leaving"), Some(json!("drain")), "{withheld}");
        assert_eq!(planned("lasting"), None, "{withheld}");
        assert_eq!(plane.resource(&leaving).await["node"]["drain_requested_at"], Value::Null);
        assert_eq!(
            plane.agents().iter().map(|agent| agent.pid).collect::<Vec<_>>(),
            before,
            "no process came or went"
        );

        // Visible without a key, and no reason to withhold traffic.
        let show = async |path: &str| {
            let response = client().get(format!("{}{path}", plane.url())).send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        };
        let (status, ready) = show("/readyz").await;
        assert_eq!(status, 200, "{ready}");
        assert!(ready.contains("frozen until") && !ready.contains("storm"), "{ready}");
        let (_, metrics) = show("/metrics").await;
        assert!(metrics.contains("slipway_control_mode{mode=\"frozen\"} 1"), "{metrics}");

        // The freeze outlives the process, and ends for all at once.
        plane.kill();
        plane.start().await;
        assert_eq!(plane.get("/api/v1/control").await["mode"], "frozen");
        let lift = format!("{FREEZE}?reason=it+is+over");
        let (status, control) = plane.call(Method::DELETE, &lift, None).await;
        assert_eq!((status, &control["mode"]), (200, &json!("acting")), "{control}");
        let ready = plane.wait_for_phase(&coming, "Ready").await;
        assert_eq!(ready["blockers"], json!([]));
        plane.wait_for_phase(&leaving, "Deleted").await;
        let (status, problem) = plane.call(Method::DELETE, &lift, None).await;
        assert_eq!((status, &problem["code"]), (409, &json!("nothing_to_lift")));
        plane.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_ends_by_itself_and_is_refused_without_an_end() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    for (body, field) in [
        (json!({ "reason": "x", "for_seconds": 0 }), "for_seconds"),
        (json!({ "reason": "x", "for_seconds": 604_801 }), "for_seconds"),
        (json!({ "reason": " ", "for_seconds": 60 }), "reason"),
    ] {
        let (status, problem) = plane.call(Method::PUT, FREEZE, Some(body)).await;
        assert_eq!((status, &problem["details"]["field"]), (400, &json!(field)), "{problem}");
    }
    let (status, problem) = plane.call(Method::DELETE, FREEZE, None).await;
    assert_eq!((status, &problem["details"]["field"]), (400, &json!("reason")), "{problem}");

    let frozen = freeze(&plane, 3).await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for(&id, "frozen", |resource| blocker(resource, "frozen").is_some()).await;
    plane.wait_for_phase(&id, "Ready").await;
    let control = plane.get("/api/v1/control").await;
    assert_eq!((&control["mode"], &control["freeze"]), (&json!("acting"), &Value::Null));
    wait::until(TIMEOUT, "its end to be noted", async || {
        let control = plane.get("/api/v1/control").await;
        control["revision"].as_i64() > frozen["revision"].as_i64()
    })
    .await;
    plane.stop().await;
}

/// Frozen at one replica, obeyed by the other.
#[tokio::test(flavor = "multi_thread")]
async fn every_replica_obeys_and_says_so() {
    let mut planes = ControlPlane::each("every_replica_obeys").await;
    let Some(mut first) = planes.pop().filter(|_| !planes.is_empty()) else { return };
    first.set(&["--lease", "3s"]);
    let mut second = first.beside();
    first.start().await;
    second.start().await;
    freeze(&first, 3_600).await;
    let control = until_settled(&second).await;
    let replicas = control["replicas"].as_array().unwrap();
    assert_eq!(replicas.len(), 2, "{control}");
    assert!(replicas.iter().all(|replica| replica["obeys"] == true), "{control}");
    let ids = [first.declare("a", 0).await, second.declare("b", 0).await];
    for id in &ids {
        first.wait_for(id, "frozen", |resource| blocker(resource, "frozen").is_some()).await;
    }
    assert!(first.agents().is_empty());

    // A replica that is gone is not waited for.
    second.kill();
    freeze(&first, 3_600).await;
    let control = until_settled(&first).await;
    let lapsed = control["replicas"].as_array().unwrap().iter();
    assert_eq!(lapsed.filter(|replica| replica["lapsed"] == true).count(), 1, "{control}");
    first.stop().await;
}

/// A replica is stopped at a random moment of its work, counts as lapsed, and wakes up
/// after the freeze is settled: nothing of the registry and nothing outside moves.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_wakes_after_a_settled_freeze_changes_nothing() {
    let mut planes = ControlPlane::each("a_replica_that_wakes").await;
    let Some(mut first) = planes.pop().filter(|_| !planes.is_empty()) else { return };
    first.set(&["--lease", "3s"]);
    let mut second = first.beside();
    first.start().await;
    second.start().await;
    let mut ids = Vec::new();
    for number in 0..12 {
        ids.push(first.declare(&format!("web-{number}"), 0).await);
    }
    for id in &ids {
        first.wait_for_phase(id, "Ready").await;
    }
    // Drains, deletions, tokens and applies are under way at both.
    for id in &ids[..6] {
        first.delete(id).await;
    }
    for number in 12..18 {
        first.declare(&format!("web-{number}"), 0).await;
    }
    second.signal(Signal::Stop);
    freeze(&first, 3_600).await;
    let control = until_settled(&first).await;
    let lapsed = control["replicas"].as_array().unwrap().iter();
    assert_eq!(lapsed.filter(|replica| replica["lapsed"] == true).count(), 1, "{control}");
    let state = async || {
        let mut said = Vec::new();
        for verb in ["node.drain", "node.deregister", "token.mint"] {
            let path = format!("/api/v1/audit?verb={verb}&limit=500");
            let entries = first.get(&path).await;
            // A node acknowledges a drain that was requested before.
            let by_loop = |entry: &&Value| entry["actor"].as_str().unwrap().starts_with("loop:");
            said.push(entries.as_array().unwrap().iter().filter(by_loop).count());
        }
        let mut directories = Vec::new();
        for namespace in std::fs::read_dir(first.substrate_root()).unwrap().map(Result::unwrap) {
            if namespace.file_type().unwrap().is_dir() {
                let nodes = std::fs::read_dir(namespace.path()).unwrap();
                directories.extend(nodes.map(|node| node.unwrap().path()));
            }
        }
        directories.sort();
        (said, directories)
    };
    let before = state().await;
    second.signal(Signal::Continue);
    // It is awake when it has acknowledged the freeze.
    wait::until(TIMEOUT, "the stopped replica to obey", async || {
        let control = first.get("/api/v1/control").await;
        let replicas = control["replicas"].as_array().unwrap();
        if replicas.iter().all(|replica| replica["obeys"] == true) {
            Ok(())
        } else {
            Err(control.to_string())
        }
    })
    .await;
    assert_eq!(state().await, before);
    let lift = format!("{FREEZE}?reason=it+is+over");
    assert_eq!(first.call(Method::DELETE, &lift, None).await.0, 200);
    for id in &ids[..6] {
        first.wait_for_phase(id, "Deleted").await;
    }
    second.stop().await;
    first.stop().await;
}
