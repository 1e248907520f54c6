//! Grace, cancelling, protection and whole projects, with the real binary on each database.

use data_encoding::HEXLOWER;
use reqwest::Method;
use ring::digest;
use serde_json::{Value, json};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, KEY, TIMEOUT, binary};

async fn delete(plane: &ControlPlane, path: &str) -> (u16, Value) {
    plane.call(Method::DELETE, path, None).await
}

async fn deletion(plane: &ControlPlane, id: &Value) -> Value {
    plane.get(&format!("/api/v1/deletions/{}", id.as_str().unwrap())).await
}

async fn wait_for_state(plane: &ControlPlane, id: &Value, state: &str) -> Value {
    wait::until(TIMEOUT, &format!("the deletion to be {state}"), async || {
        let found = deletion(plane, id).await;
        if found["state"] == state { Ok(found) } else { Err(found.to_string()) }
    })
    .await
}

/// Until its grace ends nothing is touched, a cancelled deletion leaves the same agent, and
/// what is scheduled begins after a crash too.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_waits_for_its_grace_across_a_crash() {
    for mut plane in ControlPlane::each("a_deletion_waits_for_its_grace").await {
        plane.start().await;
        let id = plane.declare("web-1", 0).await;
        plane.wait_for_phase(&id, "Ready").await;
        let agent = plane.agent(&id).await.pid;
        let path = format!("/api/v1/resources/{id}");
        let (status, refused) = delete(&plane, &format!("{path}?grace=tomorrow")).await;
        assert_eq!((status, &refused["code"]), (400, &json!("invalid_input")), "{refused}");
        let (status, scheduled) = delete(&plane, &format!("{path}?grace=1h")).await;
        assert_eq!((status, &scheduled["state"]), (202, &json!("scheduled")), "{scheduled}");
        let cancel = format!("/api/v1/deletions/{}/cancel", scheduled["id"].as_str().unwrap());
        let (status, cancelled) = plane.call(Method::POST, &cancel, Some(json!({}))).await;
        assert_eq!((status, &cancelled["state"]), (200, &json!("cancelled")), "{cancelled}");
        assert_eq!(plane.resource(&id).await["phase"], "Ready");
        assert_eq!(plane.agent(&id).await.pid, agent, "it went on");

        let (_, scheduled) = delete(&plane, &format!("{path}?grace=3s")).await;
        assert_eq!(scheduled["state"], "scheduled", "{scheduled}");
        plane.kill();
        plane.start().await;
        plane.wait_for_phase(&id, "Deleted").await;
        let done = wait_for_state(&plane, &scheduled["id"], "done").await;
        assert!(done["done_at"].as_str() > scheduled["scheduled_for"].as_str(), "{done}");
        assert!(done["restorable_until"].is_string(), "{done}");
        let of_deletion = async || {
            let own = |(aggregate, _): &(String, String)| scheduled["id"] == aggregate.as_str();
            let events = plane.events().await.into_iter().filter(own);
            events.map(|(_, kind)| kind).collect::<Vec<_>>()
        };
        wait::until(TIMEOUT, "the events to be relayed", async || of_deletion().await.len() >= 3)
            .await;
        let expected = ["deletion.Scheduled", "deletion.Started", "deletion.Done"];
        assert_eq!(of_deletion().await, expected);
        plane.stop().await;
    }
}

/// A project goes after what is in it, unless something in it is protected.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_goes_with_what_is_in_it() {
    for mut plane in ControlPlane::each("a_project_goes_with_what_is_in_it").await {
        // Absence is proven a second time after this.
        plane.set(&["--lease", "3s"]);
        plane.start().await;
        let (first, second) = (plane.declare("web-1", 0).await, plane.declare("web-2", 0).await);
        for id in [&first, &second] {
            plane.wait_for_phase(id, "Ready").await;
        }
        let path = "/api/v1/projects/default";
        let (status, refused) = delete(&plane, path).await;
        assert_eq!((status, &refused["code"]), (409, &json!("project_not_empty")), "{refused}");
        let protection = "/api/v1/protections/resource/web-2";
        let reason = json!({ "reason": "holds the books" });
        let (status, set) = plane.call(Method::PUT, protection, Some(reason)).await;
        assert_eq!((status, &set["name"]), (200, &json!("web-2")), "{set}");
        let cascade = format!("{path}?cascade=true&reason=closed");
        let (status, refused) = delete(&plane, &cascade).await;
        assert_eq!((status, &refused["code"]), (409, &json!("protected")), "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("`web-2`"), "{refused}");
        assert_eq!(plane.resource(&first).await["phase"], "Ready", "nothing was touched");
        let (status, _) = delete(&plane, protection).await;
        assert_eq!(status, 204);

        let (status, running) = delete(&plane, &cascade).await;
        assert_eq!((status, &running["state"]), (200, &json!("running")), "{running}");
        assert_eq!(running["resources"], 2, "{running}");
        let declare = json!({ "handle": "web-3", "project": "default", "blueprint": "local-node" });
        let (status, late) = plane.call(Method::POST, "/api/v1/resources", Some(declare)).await;
        assert_eq!((status, &late["code"]), (409, &json!("project_leaving")), "{late}");
        wait_for_state(&plane, &running["id"], "done").await;
        for id in [&first, &second] {
            assert_eq!(plane.resource(id).await["phase"], "Deleted");
        }
        let (status, _) = plane.call(Method::GET, path, None).await;
        assert_eq!(status, 404);
        assert!(plane.agents().is_empty());
        emptiness_is_proven(&plane, running["id"].as_str().unwrap(), &first).await;
        restored(&mut plane, &running["id"], [&first, &second]).await;
        plane.stop().await;
    }
}

/// The project comes back with its resources, as new attempts; a crash right after the
/// answer takes nothing of it away.
async fn restored(plane: &mut ControlPlane, deletion: &Value, resources: [&String; 2]) {
    let path = format!("/api/v1/deletions/{}/restore", deletion.as_str().unwrap());
    let (status, refused) = plane.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!((status, &refused["code"]), (409, &json!("substrate_gone")), "{refused}");
    let body = json!({ "redeclare": true, "reason": "closed by mistake" });
    let (status, restored) = plane.call(Method::POST, &path, Some(body)).await;
    assert_eq!((status, &restored["restored_count"]), (200, &json!(3)), "{restored}");
    plane.kill();
    plane.start().await;
    for id in resources {
        let ready = plane.wait_for_phase(id, "Ready").await;
        assert_eq!(ready["attempt"]["number"], 2, "{ready}");
    }
    assert_eq!(plane.agents().len(), 2);
    let of_deletion = async || {
        let own = |(aggregate, _): &(String, String)| deletion == aggregate.as_str();
        let events = plane.events().await.into_iter().filter(own);
        events.map(|(_, kind)| kind).collect::<Vec<_>>()
    };
    wait::until(TIMEOUT, "the events to be relayed", async || of_deletion().await.len() >= 3).await;
    assert_eq!(of_deletion().await, ["deletion.Started", "deletion.Done", "deletion.Restored"]);
}

/// The bytes of the report.
fn export(plane: &ControlPlane, id: &str) -> String {
    let mut command = binary();
    command.env("SLIPWAY_SERVER", plane.url()).env("SLIPWAY_KEY", KEY);
    let output = command.args(["deletion", "report", id, "-o", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The report of a deletion: complete, the same each time, and with the digest of its lines.
async fn emptiness_is_proven(plane: &ControlPlane, id: &str, resource: &str) {
    let report = wait::until(TIMEOUT, "everything to be proven gone", async || {
        let report = export(plane, id);
        if report.contains("\"not_yet\":0") { Ok(report) } else { Err(report) }
    })
    .await;
    let (lines, end) = report.trim_end().rsplit_once('\n').unwrap();
    let digest = digest::digest(&digest::SHA256, format!("{lines}\n").as_bytes());
    let digest = HEXLOWER.encode(digest.as_ref());
    let end: Value = serde_json::from_str(end).unwrap();
    assert_eq!(end["digest"], format!("sha256:{digest}"), "{report}");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["kind"], &lines[0]["state"]), (&json!("project"), &json!("done")));
    assert_eq!(end["lines"], lines.len(), "{report}");
    assert!(lines[1..].iter().all(|line| line["proof"] == "gone"), "{report}");
    for (kind, count) in [("attempt", 2), ("node", 2), ("token", 2), ("namespace", 1)] {
        let found = lines[1..].iter().filter(|line| line["kind"] == kind).count();
        assert_eq!(found, count, "{kind}: {report}");
    }
    let again = export(plane, id);
    assert_eq!(again, report, "the same rows give the same bytes");
    let text = plane.says(&["deletion", "report", id]);
    assert!(text.contains("everything is proven gone"), "{text}");
    let (path, body) = (format!("/api/v1/resources/{resource}/orphan"), json!({ "reason": "x" }));
    let (status, refused) = plane.call(Method::POST, &path, Some(body)).await;
    assert_eq!((status, &refused["code"]), (409, &json!("not_orphanable")), "{refused}");
}
