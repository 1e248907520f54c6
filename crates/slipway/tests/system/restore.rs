//! A database that was restored to an earlier state: nothing outside is changed
//! until a person has checked and resumes, and then everything converges.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::process::{Signal, is_alive, send_signal};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT, binary};

/// Copies SQLite's files while nobody has them open.
pub(crate) fn copy_database(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["slipway.db", "slipway.db-wal", "slipway.db-shm"] {
        let (source, target) = (from.join(name), to.join(name));
        if target.exists() {
            std::fs::remove_file(&target).unwrap();
        }
        if source.exists() {
            std::fs::copy(source, target).unwrap();
        }
    }
}

/// The engine's files: every node directory with its object and document.
fn outside(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for namespace in std::fs::read_dir(root).unwrap().map(Result::unwrap) {
        if !namespace.file_type().unwrap().is_dir() {
            continue;
        }
        for node in std::fs::read_dir(namespace.path()).unwrap().map(Result::unwrap) {
            for name in ["composite.json", "user-data", "terminating"] {
                let path = node.path().join(name);
                if let Ok(text) = std::fs::read_to_string(&path) {
                    found.insert(path, text);
                }
            }
        }
    }
    found
}

fn pids(plane: &ControlPlane) -> Vec<u32> {
    let mut pids: Vec<_> = plane.agents().iter().map(|agent| agent.pid).collect();
    pids.sort_unstable();
    pids
}

async fn withheld(plane: &ControlPlane) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let withheld = plane.get("/api/v1/control/withheld").await;
    let lines = withheld.as_array().unwrap().iter();
    lines.map(|line| (text(&line["handle"]), text(&line["action"]))).collect()
}

async fn until_withheld(plane: &ControlPlane, wanted: &[(&str, &str)]) {
    let wanted: BTreeMap<_, _> = wanted
        .iter()
        .map(|(handle, action)| ((*handle).to_owned(), (*action).to_owned()))
        .collect();
    wait::until(TIMEOUT, "the plan to be complete", async || {
        let withheld = withheld(plane).await;
        if withheld == wanted { Ok(()) } else { Err(format!("{withheld:?}\n{}", plane.log_tail())) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_observes_only_until_resumed() {
    let mut plane = ControlPlane::new(None);
    // A suspicion becomes a leak after more than a lease; agents that the
    // backup does not know end by themselves 30 s after the restore.
    plane.set(&["--lease", "3s"]);
    plane.start().await;
    let kept = plane.declare("kept", 0).await;
    let gone = plane.declare("gone", 0).await;
    plane.wait_for_phase(&kept, "Ready").await;
    plane.wait_for_phase(&gone, "Ready").await;
    let body = json!({ "reason": "backup" });
    let (status, _) = plane.call(Method::PUT, "/api/v1/control/freeze", Some(body)).await;
    assert_eq!(status, 200);
    // Only declared when the backup is taken.
    let late = plane.declare("late", 0).await;
    until_withheld(&plane, &[("late", "apply")]).await;
    plane.kill();
    let (data, backup) = (plane.data_dir(), plane.data_dir().with_extension("backup"));
    copy_database(&data, &backup);

    // After the backup: one is deleted, one is declared, one enrols, one
    // becomes Ready again under claims that the backup does not know.
    plane.start().await;
    let lift = "/api/v1/control/freeze?reason=the+backup+is+done";
    assert_eq!(plane.call(Method::DELETE, lift, None).await.0, 200);
    plane.wait_for_phase(&late, "Ready").await;
    plane.delete(&gone).await;
    plane.wait_for_phase(&gone, "Deleted").await;
    let unknown = plane.declare("unknown", 0).await;
    plane.wait_for_phase(&unknown, "Ready").await;
    let unknown_agent = plane.agent(&unknown).await;
    let unknown_name =
        plane.resource(&unknown).await["attempt"]["xr_name"].as_str().unwrap().to_owned();
    let first_agent = plane.agent(&kept).await;
    send_signal(first_agent.pid, Signal::Kill).unwrap();
    wait::until(TIMEOUT, "the killed agent to be started again", async || {
        let xr_name =
            plane.resource(&kept).await["attempt"]["xr_name"].as_str().unwrap().to_owned();
        plane.agents_of(&xr_name).iter().any(|agent| agent.pid != first_agent.pid)
    })
    .await;
    plane.wait_for_phase(&kept, "Ready").await;
    plane.kill();

    let before = (pids(&plane), outside(&plane.substrate_root()));
    copy_database(&backup, &data);
    plane.start().await;
    let control = plane.get("/api/v1/control").await;
    assert_eq!(control["mode"], "observing", "{control}");
    let reason = control["observing"]["reason"].as_str().unwrap();
    assert!(reason.contains("restored to an earlier state"), "{reason}");
    // The deleted one would be made again, the late one would get a new token;
    // the one that still matches the backup needs nothing.
    until_withheld(&plane, &[("gone", "apply"), ("late", "apply")]).await;
    let shown = plane.resource(&gone).await;
    assert_eq!(shown["blockers"][0]["code"], "observe_only", "{shown}");
    assert_eq!(shown["blockers"][0]["evidence"]["action"], "apply");
    assert_eq!((pids(&plane), outside(&plane.substrate_root())), before, "nothing was touched");

    // Objects that the restored rows do not know are listed, and left alone.
    wait::until(TIMEOUT, "the unknown node to be listed", async || {
        plane.call(Method::POST, "/api/v1/leaks/find", None).await;
        let leaks = plane.get("/api/v1/leaks").await.to_string();
        if leaks.contains(&unknown_name) { Ok(()) } else { Err(leaks) }
    })
    .await;
    assert_eq!((pids(&plane), outside(&plane.substrate_root())), before, "nothing was touched");

    // Not even a harmless action: a dead agent stays dead.
    let agent = plane.agent(&kept).await;
    send_signal(agent.pid, Signal::Kill).unwrap();
    until_withheld(&plane, &[("gone", "apply"), ("kept", "apply"), ("late", "apply")]).await;
    assert!(pids(&plane).iter().all(|pid| before.0.contains(pid)), "nothing was started");
    // Nor after another restart, which detects nothing new.
    plane.stop().await;
    plane.start().await;
    let again = plane.get("/api/v1/control").await;
    assert_eq!(again["observing"], control["observing"], "it is detected once");

    let body = json!({ "reason": "looked at the plan" });
    let (status, control) =
        plane.call(Method::POST, "/api/v1/control/resume", Some(body.clone())).await;
    // The freeze of the backup is in effect again.
    assert_eq!((status, &control["mode"]), (200, &json!("frozen")), "{control}");
    assert_eq!(plane.call(Method::DELETE, lift, None).await.0, 200);
    for id in [&kept, &gone, &late] {
        let ready = plane
            .wait_for(id, "Ready and nothing in its way", |resource| {
                resource["phase"] == "Ready" && resource["blockers"] == json!([])
            })
            .await;
        plane.agent(id).await;
        assert_eq!(ready["node"]["registered"], true);
    }
    // Written under a claim token above any that the backup did not know.
    let object = plane.node_directory(&kept).await.join("composite.json");
    let object: Value = serde_json::from_str(&std::fs::read_to_string(object).unwrap()).unwrap();
    let claim = object["metadata"]["annotations"]["slipway.dev/claim-token"].as_str().unwrap();
    assert!(claim.parse::<i64>().unwrap() > 1 << 24, "{claim}");
    assert!(withheld(&plane).await.is_empty());
    assert!(is_alive(unknown_agent.pid), "what the backup does not know is left alone");
    assert_eq!(plane.agents().len(), 4, "one process each, none twice");
    let (status, problem) = plane.call(Method::POST, "/api/v1/control/resume", Some(body)).await;
    assert_eq!((status, &problem["code"]), (409, &json!("nothing_to_lift")));

    for id in [&kept, &gone, &late] {
        plane.delete(id).await;
        plane.wait_for_phase(id, "Deleted").await;
    }
    plane.stop().await;
}

/// A dump, a deletion, a stop and a restore within one heartbeat interval: the last
/// heartbeat of the stopped process shows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_right_after_a_stop_is_noticed() {
    let mut plane = ControlPlane::new(None);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let (data, backup) = (plane.data_dir(), plane.data_dir().with_extension("backup"));
    std::fs::create_dir_all(&backup).unwrap();
    let mut dump = binary();
    dump.arg("backup").arg(backup.join("slipway.db")).arg("--data-dir").arg(&data);
    let dumped = dump.output().unwrap();
    assert!(dumped.status.success(), "{dumped:?}");
    plane.delete(&id).await;
    plane.wait_for_phase(&id, "Deleted").await;
    plane.stop().await;
    copy_database(&backup, &data);
    plane.start().await;
    let control = plane.get("/api/v1/control").await;
    assert_eq!(control["mode"], "observing", "{control}");
    until_withheld(&plane, &[("web-1", "apply")]).await;
    assert!(plane.agents().is_empty(), "nothing is made again");
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn started_to_observe_only_it_acts_after_resume() {
    let mut plane = ControlPlane::new(None);
    plane.set_environment("SLIPWAY_OBSERVE_ONLY", "true");
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    until_withheld(&plane, &[("web-1", "apply")]).await;
    assert!(plane.agents().is_empty());
    let body = json!({ "reason": "all is well" });
    let (status, control) = plane.call(Method::POST, "/api/v1/control/resume", Some(body)).await;
    assert_eq!((status, &control["mode"]), (200, &json!("acting")), "{control}");
    plane.wait_for_phase(&id, "Ready").await;
    plane.stop().await;
}
