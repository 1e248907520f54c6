//! A life: declared, Ready, drained, Deleted, observed through the API and in
//! the process table.

use reqwest::Method;
use serde_json::json;
use slipway_testkit::process::{Signal, is_alive, send_signal};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

const ALL: [&str; 4] = ["Requested", "Ready", "Deleting", "Deleted"];

#[tokio::test(flavor = "multi_thread")]
async fn a_node_comes_up_as_a_process_and_leaves_in_order() {
    for mut plane in ControlPlane::each("a_node_comes_up_as_a_process").await {
        plane.start().await;
        let id = plane.declare("web-1", 0).await;
        let ready = plane.wait_for_phase(&id, "Ready").await;
        assert_eq!(ready["node"]["registered"], true);
        let agent = plane.agent(&id).await;

        plane.delete(&id).await;
        let gone = plane.wait_for_phase(&id, "Deleted").await;
        assert_eq!(gone["node"]["deregistered_how"], "acknowledged");
        assert!(!is_alive(agent.pid));
        assert!(plane.agents().is_empty());
        plane.assert_each_event_once(&id, &ALL).await;
        let deletion = plane
            .get(&format!("/api/v1/deletions/{}", gone["deletion_id"].as_str().unwrap()))
            .await;
        assert_eq!(deletion["state"], "done");
        plane.stop().await;
    }
}

/// Two processes at once: the old one drains only after the new one's node enrolled.
#[tokio::test(flavor = "multi_thread")]
async fn a_surge_brings_the_new_process_up_before_the_old_one_goes() {
    for mut plane in ControlPlane::each("a_surge_brings_the_new_process_up").await {
        plane.start().await;
        let id = plane.declare("web-1", 1).await;
        let before = plane.wait_for_phase(&id, "Ready").await;
        let old = plane.agent(&id).await;
        let path = format!("/api/v1/resources/{id}/replace");
        let body = json!({ "surge": true, "parameters": { "busy_seconds": 0 } });
        let (status, surged) = plane.call(Method::POST, &path, Some(body)).await;
        assert_eq!((status, &surged["attempt"]), (202, &before["attempt"]), "{surged}");
        let over = plane
            .wait_for(&id, "the new attempt in use", |seen| seen["attempt"]["number"] == 2)
            .await;
        assert_eq!(
            (&over["phase"], &over["node"]["hostname"]),
            (&json!("Ready"), &json!("web-1-2"))
        );
        assert_ne!(plane.agent(&id).await.pid, old.pid);
        let alone =
            plane.wait_for(&id, "one attempt", |seen| seen["second_attempt"].is_null()).await;
        assert_eq!((&alone["phase"], &alone["node"]["id"]), (&json!("Ready"), &over["node"]["id"]));
        assert!(!is_alive(old.pid));
        assert_eq!(plane.agents().len(), 1);
        plane.delete(&id).await;
        plane.wait_for_phase(&id, "Deleted").await;
        assert!(plane.agents().is_empty());
        plane.stop().await;
    }
}

/// The agent process dies and is restarted with the same identity.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_comes_back_as_the_same_node() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    let ready = plane.wait_for_phase(&id, "Ready").await;
    let agent = plane.agent(&id).await;
    send_signal(agent.pid, Signal::Kill).unwrap();
    let xr_name = ready["attempt"]["xr_name"].as_str().unwrap().to_owned();
    let back = wait::until(TIMEOUT, "another agent process", async || {
        plane.agents_of(&xr_name).into_iter().find(|process| process.pid != agent.pid)
    })
    .await;
    assert!(is_alive(back.pid));
    let again = plane.wait_for_phase(&id, "Ready").await;
    assert_eq!(again["node"]["id"], ready["node"]["id"]);
    assert_eq!(plane.agents().len(), 1);
}

/// The agent process dies in the middle of its drain: it is restarted, finishes
/// and acknowledges; nobody has to force anything.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_while_draining_comes_back_and_finishes() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("web-1", 2).await;
    plane.wait_for_phase(&id, "Ready").await;
    let agent = plane.agent(&id).await;
    plane.delete(&id).await;
    plane
        .wait_for(&id, "draining", |resource| resource["node"]["drain_requested_at"].is_string())
        .await;
    send_signal(agent.pid, Signal::Kill).unwrap();
    let gone = plane.wait_for_phase(&id, "Deleted").await;
    assert_eq!(gone["node"]["deregistered_how"], "acknowledged");
    assert!(plane.agents().is_empty());
}

/// Somebody removes the node directory: the agent ends by itself, the node is
/// replaced, the resource is Ready again.
#[tokio::test(flavor = "multi_thread")]
async fn a_substrate_removed_by_hand_is_made_anew() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    let ready = plane.wait_for_phase(&id, "Ready").await;
    let agent = plane.agent(&id).await;
    let directory = plane.node_directory(&id).await;
    std::fs::remove_dir_all(&directory).unwrap();
    let again = plane
        .wait_for(&id, "Ready with another node", |resource| {
            resource["phase"] == "Ready" && resource["node"]["id"] != ready["node"]["id"]
        })
        .await;
    assert_eq!(again["node"]["registered"], true);
    wait::until(TIMEOUT, "the first agent to end by itself", async || !is_alive(agent.pid)).await;
    assert_eq!(plane.agents().len(), 1);
    let old = plane.get(&format!("/api/v1/nodes/{}", ready["node"]["id"].as_str().unwrap())).await;
    assert_eq!(old["deregistered_how"], "substrate_absent");
}

/// Invariants 4 and 16 with real agents: a frozen agent blocks the drain with a
/// blocker that names it, `explain` shows it, and force ends the wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_agent_holds_the_drain_until_forced() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    let ready = plane.wait_for_phase(&id, "Ready").await;
    let force = format!("/api/v1/resources/{id}/force-drain");
    let reason = json!({ "reason": "the agent is frozen" });
    let (status, refused) = plane.call(Method::POST, &force, Some(reason.clone())).await;
    assert_eq!((status, refused["code"].as_str()), (409, Some("nothing_to_force")));

    let agent = plane.agent(&id).await;
    send_signal(agent.pid, Signal::Stop).unwrap();
    plane.delete(&id).await;
    let blocked =
        |resource: &serde_json::Value| resource["blockers"][0]["code"] == "node_not_draining";
    let held = plane.wait_for(&id, "blocked", blocked).await;
    assert_eq!(held["phase"], "Deregistering");
    let node = ready["node"]["id"].as_str().unwrap();
    assert!(held["blockers"][0]["message"].as_str().unwrap().contains(node));
    assert!(held["blockers"][0]["evidence"]["deadline"].is_string());
    let explained = plane.get(&format!("/api/v1/resources/{id}/explain")).await;
    assert!(explained["waiting_for"].as_str().unwrap().contains(node));
    assert!(is_alive(agent.pid), "the substrate stands while the node is registered");

    let (status, body) = plane.call(Method::POST, &force, Some(reason)).await;
    assert_eq!(status, 202, "{body}");
    let gone = plane.wait_for_phase(&id, "Deleted").await;
    assert_eq!(gone["node"]["deregistered_how"], "forced");
    assert_eq!(gone["node"]["deregistered_reason"], "the agent is frozen");
    assert!(!is_alive(agent.pid));
    plane.assert_each_event_once(&id, &ALL).await;
}

/// A deliberate failure is final for the attempt; a retry takes it down in
/// order and fills the slot again, under the same handle.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_is_retried_in_the_same_slot() {
    for mut plane in ControlPlane::each("a_failed_attempt_is_retried").await {
        plane.start().await;
        let id = plane.declare("web-1", 0).await;
        let ready = plane.wait_for_phase(&id, "Ready").await;
        let retry = format!("/api/v1/resources/{id}/retry");
        let reason = json!({ "reason": "the quota was raised" });
        let (status, refused) = plane.call(Method::POST, &retry, Some(reason.clone())).await;
        assert_eq!((status, refused["code"].as_str()), (409, Some("nothing_to_retry")));

        let directory = plane.node_directory(&id).await;
        std::fs::write(directory.join("failure.json"), r#"{"message":"quota exceeded"}"#).unwrap();
        let failed = plane.wait_for_phase(&id, "Failed").await;
        assert_eq!(failed["attempt"]["failure_reason"], "quota exceeded");
        let (status, body) = plane.call(Method::POST, &retry, Some(reason)).await;
        assert_eq!(status, 202, "{body}");
        let again = plane
            .wait_for(&id, "Ready with its second attempt", |resource| {
                resource["phase"] == "Ready" && resource["attempt"]["number"] == 2
            })
            .await;
        assert_eq!(again["handle"], "web-1");
        assert_eq!(again["deletion_id"], serde_json::Value::Null);
        assert_ne!(again["node"]["id"], ready["node"]["id"]);
        assert_eq!(plane.agents().len(), 1);
        plane.delete(&id).await;
        plane.wait_for_phase(&id, "Deleted").await;
        plane.assert_each_event_once(&id, &ALL).await;
    }
}
