//! Leaks with the real engine and real agents: unclaimed objects are found and
//! removed on request, vanished ones are healed, and foreign ones are left
//! alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::process::{Signal, Spawned, is_alive, send_signal};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary, client};

const FIND: &str = "/api/v1/leaks/find";

/// Copies a node directory beside itself with changed labels: an object that a
/// database restored to an earlier state no longer knows.
fn copy(from: &Path, name: &str, label: &str, value: &str) -> PathBuf {
    let to = from.with_file_name(name);
    fs::create_dir(&to).unwrap();
    for file in ["composite.json", "user-data"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    let object = fs::read_to_string(to.join("composite.json")).unwrap();
    let mut object: Value = serde_json::from_str(&object).unwrap();
    object["metadata"]["labels"][label] = json!(value);
    object["metadata"]["uid"] = json!(format!("uid of {name}"));
    fs::write(to.join("composite.json"), object.to_string()).unwrap();
    to
}

/// Starts an agent in that directory, as the engine would have.
fn run_agent(directory: &Path) -> Spawned {
    let mut command = binary();
    command.args(["agent", "node", "--dir"]).arg(directory).current_dir(directory);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Spawned::start(&mut command).unwrap()
}

async fn find(plane: &ControlPlane) -> Value {
    let (status, found) = plane.call(Method::POST, FIND, None).await;
    // The loop may be scanning right now.
    if status == 503 {
        return Value::Null;
    }
    assert_eq!(status, 200, "{found}");
    found[0].clone()
}

/// Scans until this many leaks are open.
async fn find_leaks(plane: &ControlPlane, count: usize) -> Vec<Value> {
    wait::until(TIMEOUT, "findings to count", async || {
        let found = find(plane).await;
        let leaks = found["leaks"].as_array().cloned().unwrap_or_default();
        if leaks.len() == count { Ok(leaks) } else { Err(found.to_string()) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_row_claims_is_found_and_removed_by_command() {
    for mut plane in ControlPlane::each("what_no_row_claims").await {
        plane.set(&["--lease", "3s"]);
        plane.start().await;
        let id = plane.declare("web-1", 0).await;
        plane.wait_for_phase(&id, "Ready").await;
        let directory = plane.node_directory(&id).await;
        let agent = plane.agent(&id).await;
        let unknown = "0192f0c1-2b3c-7d4e-8f50-123456789abc";
        let stray = copy(&directory, "stray", "slipway.dev/provisioned-resource", unknown);
        let theirs = copy(&directory, "theirs", "slipway.dev/installation", unknown);
        let orphan = run_agent(&stray);
        let orphan_pid = orphan.pid();

        let seen = wait::until(TIMEOUT, "a look", async || {
            Some(find(&plane).await).filter(|observe| !observe.is_null())
        })
        .await;
        assert_eq!((&seen["objects"], &seen["foreign"]), (&json!(2), &json!(1)), "{seen}");
        let leaks = find_leaks(&plane, 1).await;
        assert_eq!(leaks[0]["kind"], "unclaimed_object");
        assert_eq!(leaks[0]["name"], "stray");
        let leak_id = leaks[0]["id"].as_str().unwrap().to_owned();
        let metrics = client().get(format!("{}/metrics", plane.url())).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        assert!(metrics.contains("slipway_open_leaks{kind=\"unclaimed_object\"} 1"), "{metrics}");

        let path = format!("/api/v1/leaks/{leak_id}/resolve");
        let body = json!({ "reason": "it is gone" });
        let (status, problem) = plane.call(Method::POST, &path, Some(body)).await;
        assert_eq!((status, &problem["code"]), (409, &json!("leak_not_gone")), "{problem}");

        let removed = binary()
            .env("SLIPWAY_KEY", KEY)
            .args(["leaks", "remove", &leak_id, "--yes", "--reason", "left by a restore"])
            .args(["--server", &plane.url()])
            .output()
            .unwrap();
        assert!(removed.status.success(), "{removed:?}");
        let path = format!("/api/v1/leaks/{leak_id}");
        let over = wait::until(TIMEOUT, "the object to be gone", async || {
            Some(plane.get(&path).await).filter(|leak| leak["state"] == "resolved")
        })
        .await;
        let resolution = over["resolution"].as_str().unwrap();
        assert!(resolution.contains("left by a restore"), "{over}");
        assert!(!stray.exists());
        let mut orphan = orphan;
        orphan.exit(TIMEOUT).await.unwrap();
        assert!(!is_alive(orphan_pid));

        assert!(theirs.join("composite.json").exists(), "another installation's is left alone");
        assert_eq!(plane.agent(&id).await.pid, agent.pid, "and so is what a row claims");
        fs::remove_dir_all(theirs).unwrap();
        plane.stop().await;
    }
}

/// With a sweep interval of an hour, only the scan can heal it.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_whose_object_vanished_is_healed_by_a_scan() {
    let mut plane = ControlPlane::new(None);
    plane.set(&["--reconcile-interval", "1h", "--orphan-interval", "1s", "--lease", "3s"]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    let before = plane.wait_for_phase(&id, "Ready").await;
    let directory = plane.node_directory(&id).await;
    let agent = plane.agent(&id).await;
    send_signal(agent.pid, Signal::Kill).unwrap();
    wait::until(TIMEOUT, "the agent to be gone", async || !is_alive(agent.pid)).await;
    fs::remove_dir_all(&directory).unwrap();

    let after = plane
        .wait_for(&id, "Ready with another node", |resource| {
            resource["phase"] == "Ready" && resource["node"]["id"] != before["node"]["id"]
        })
        .await;
    assert_eq!(after["attempt"]["id"], before["attempt"]["id"]);
    assert_ne!(plane.agent(&id).await.pid, agent.pid);
    let loops = plane.get("/api/v1/loops").await;
    let orphans = loops.as_array().unwrap().iter().find(|status| status["name"] == "orphans");
    assert!(orphans.unwrap()["claimed"].as_u64() > Some(0), "{loops}");
    assert_eq!(plane.get("/api/v1/leaks").await, json!([]), "it healed before it counted");
    plane.stop().await;
}
