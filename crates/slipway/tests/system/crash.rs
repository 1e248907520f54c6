//! SIGKILL of the control plane at a few fixed points, then `up` again on the
//! same data: it converges, with one process per resource and each event once.

use slipway_testkit::process::is_alive;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

const ALL: [&str; 4] = ["Requested", "Ready", "Deleting", "Deleted"];

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_provisioning_it_converges_with_one_process_each() {
    for mut plane in ControlPlane::each("killed_while_provisioning").await {
        plane.start().await;
        // Killed right after the answer: only the declaration is stored.
        let mut ids = vec![plane.declare("at-once", 0).await];
        plane.kill();
        plane.start().await;

        // Killed as soon as an agent process appears, before the resource is Ready.
        ids.push(plane.declare("at-first-process", 0).await);
        wait::until(TIMEOUT, "a second agent process", async || plane.agents().len() >= 2).await;
        plane.kill();
        plane.start().await;

        // Killed with a few in every stage of coming up.
        for number in 0..4 {
            ids.push(plane.declare(&format!("many-{number}"), 0).await);
        }
        wait::until(TIMEOUT, "some more processes", async || plane.agents().len() >= 4).await;
        plane.kill();
        plane.start().await;

        for id in &ids {
            plane.wait_for_phase(id, "Ready").await;
            plane.agent(id).await;
        }
        assert_eq!(plane.agents().len(), ids.len());
        for id in &ids {
            plane.assert_each_event_once(id, &ALL[..2]).await;
            plane.delete(id).await;
        }
        for id in &ids {
            plane.wait_for_phase(id, "Deleted").await;
            plane.assert_each_event_once(id, &ALL).await;
        }
        assert!(plane.agents().is_empty());
        plane.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_tearing_down_it_ends_with_nothing_left() {
    for mut plane in ControlPlane::each("killed_while_tearing_down").await {
        plane.start().await;
        let busy = plane.declare("busy", 5).await;
        let plain = plane.declare("plain", 0).await;
        plane.wait_for_phase(&busy, "Ready").await;
        plane.wait_for_phase(&plain, "Ready").await;
        let agent = plane.agent(&busy).await;

        // Killed right after the request, before the drain is requested.
        plane.delete(&plain).await;
        plane.kill();
        plane.start().await;

        // Killed while the node finishes its work.
        plane.delete(&busy).await;
        plane
            .wait_for(&busy, "draining", |resource| {
                resource["node"]["drain_requested_at"].is_string()
            })
            .await;
        plane.kill();
        assert!(is_alive(agent.pid), "the agent outlives the control plane");
        plane.start().await;

        for id in [&busy, &plain] {
            let gone = plane.wait_for_phase(id, "Deleted").await;
            assert_eq!(gone["node"]["deregistered_how"], "acknowledged");
            plane.assert_each_event_once(id, &ALL).await;
        }
        assert!(!is_alive(agent.pid));
        assert!(plane.agents().is_empty());
        plane.stop().await;
    }
}

/// A restart with everything settled changes nothing and starts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn started_again_it_finds_its_agents_and_doubles_none() {
    for mut plane in ControlPlane::each("started_again_it_finds_its_agents").await {
        plane.start().await;
        let id = plane.declare("web-1", 0).await;
        plane.wait_for_phase(&id, "Ready").await;
        let before = plane.agent(&id).await;
        plane.stop().await;
        assert!(is_alive(before.pid), "stopping the control plane stops no node");
        plane.start().await;
        let heartbeats = plane.resource(&id).await["node"]["last_heartbeat_at"].clone();
        plane
            .wait_for(&id, "heard of again", |resource| {
                resource["phase"] == "Ready" && resource["node"]["last_heartbeat_at"] != heartbeats
            })
            .await;
        assert_eq!(plane.agent(&id).await.pid, before.pid);
        plane.assert_each_event_once(&id, &ALL[..2]).await;
    }
}
