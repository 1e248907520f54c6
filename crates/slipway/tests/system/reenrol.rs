//! Machines that enrol again: a node that never reported, with the real binary on each
//! database. The agents of the local engine cannot reach the server, so that scripted ones
//! enrol in their place.

use data_encoding::BASE64;
use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary, client};

/// Registers with a token; id and key of the node, or the code of the refusal.
async fn register(plane: &ControlPlane, token: &str, key: u8) -> Result<(String, String), String> {
    let body = json!({ "token": token, "public_key": BASE64.encode(&[key; 32]) });
    let request = client().post(format!("{}/v1/register", plane.url())).json(&body);
    let reply: Value = request.send().await.unwrap().json().await.unwrap();
    let text = |name: &str| reply[name].as_str().map(str::to_owned);
    match text("code") {
        Some(code) => Err(code),
        None => Ok((text("node_id").unwrap(), text("node_secret_key").unwrap())),
    }
}

async fn heartbeat(plane: &ControlPlane, (node, key): &(String, String)) -> u16 {
    let request = client().post(format!("{}/v1/nodes/{node}/heartbeat", plane.url()));
    request.bearer_auth(key).send().await.unwrap().status().as_u16()
}

/// Runs `slipway resource reenrol`; the token that it shows, or what it says instead.
fn reenrol(plane: &ControlPlane, handle: &str) -> Result<String, String> {
    let mut command = binary();
    command.env("SLIPWAY_KEY", KEY).args(["resource", "reenrol", handle, "--reason", "full disk"]);
    let output = command.args(["-o", "json", "--server", &plane.url()]).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr).unwrap());
    }
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    Ok(shown["token"].as_str().unwrap().to_owned())
}

fn blocked_by(seen: &Value, code: &str) -> bool {
    seen["blockers"].as_array().unwrap().iter().any(|blocker| blocker["code"] == code)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_never_reports_is_shown_and_its_machine_enrols_again() {
    for mut plane in ControlPlane::each("a_node_that_never_reports").await {
        plane.set(&["--public-url", "http://127.0.0.1:9", "--orphan-after", "300s"]);
        plane.set(&["--first-heartbeat-deadline", "1s", "--reconcile-interval", "1s"]);
        plane.start().await;
        let id = plane.declare("web-1", 0).await;
        plane.wait_for_phase(&id, "Enrolling").await;
        let file = plane.node_directory(&id).await.join("rootfs/etc/plexd/bootstrap-token");
        let token = wait::until(TIMEOUT, "the token to be in place", async || {
            std::fs::read_to_string(&file).map_err(|error| error.to_string())
        })
        .await;
        let old = register(&plane, token.trim(), 1).await.unwrap();
        let silent = plane.wait_for(&id, "silent", |seen| blocked_by(seen, "node_silent")).await;
        assert_eq!(silent["phase"], "Ready", "{silent}");
        let explained = plane.get(&format!("/api/v1/resources/{id}/explain")).await;
        let waits = explained["waiting_for"].as_str().unwrap();
        assert!(waits.contains("the first heartbeat of node"), "{explained}");
        assert_eq!(register(&plane, token.trim(), 2).await.unwrap_err(), "token_consumed");

        // It is a write to the registry, so a freeze does not withhold it.
        let body = json!({ "reason": "test", "for_seconds": 600 });
        let (status, frozen) = plane.call(Method::PUT, "/api/v1/control/freeze", Some(body)).await;
        assert_eq!(status, 200, "{frozen}");
        let first = reenrol(&plane, "web-1").unwrap();
        let second = reenrol(&plane, "web-1").unwrap();
        assert_eq!(heartbeat(&plane, &old).await, 401, "a late request with the old key");
        let back = plane.wait_for_phase(&id, "Enrolling").await;
        assert_eq!(back["node"]["deregistered_how"], "reenrolled", "{back}");
        for (token, code) in [(token.trim(), "token_consumed"), (&first, "token_revoked")] {
            assert_eq!(register(&plane, token, 1).await.unwrap_err(), code);
        }
        let path = "/api/v1/control/freeze?reason=test";
        let (status, lifted) = plane.call(Method::DELETE, path, None).await;
        assert_eq!(status, 200, "{lifted}");

        let new = register(&plane, &second, 2).await.unwrap();
        plane.wait_for_phase(&id, "Ready").await;
        assert_eq!(heartbeat(&plane, &new).await, 200);
        let well = |seen: &Value| seen["blockers"] == json!([]);
        plane.wait_for(&id, "without a blocker", well).await;
        let refused = reenrol(&plane, "web-1").unwrap_err();
        assert!(refused.contains("nothing_to_reenrol"), "{refused}");

        // Its node leaves: the machine stays.
        let leave = client().post(format!("{}/v1/nodes/{}/deregister", plane.url(), new.0));
        assert_eq!(leave.bearer_auth(&new.1).send().await.unwrap().status().as_u16(), 204);
        plane.wait_for(&id, "left", |seen| blocked_by(seen, "node_left")).await;
        let token = reenrol(&plane, "web-1").unwrap();
        let last = register(&plane, &token, 3).await.unwrap();
        plane.wait_for_phase(&id, "Ready").await;

        plane.delete(&id).await;
        // By its id: it may be gone already, and then its handle is free.
        let refused = reenrol(&plane, &id).unwrap_err();
        assert!(refused.contains("not_enrolling"), "{refused}");
        plane.wait_for_phase(&id, "Deleted").await;
        assert_eq!(heartbeat(&plane, &last).await, 401);
        // Refused registrations are in the log, by code and resource.
        let log = plane.log_text();
        let refusal = |line: &&str| line.contains("a registration was refused");
        let told = log
            .lines()
            .filter(refusal)
            .any(|line| line.contains("token_consumed") && line.contains("web-1"));
        assert!(told, "{}", plane.log_tail());
        plane.stop().await;
    }
}
