//! A replica that is stopped between its decision and the action, for longer
//! than its lease, and continues when the resource is long Deleted.

use std::path::Path;
use std::time::Duration;

use slipway_testkit::postgres;
use slipway_testkit::process::Signal;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

/// The last step before a node directory is laid out. None of our checks comes
/// after it: a replica that stops here later makes an object that nobody wants
/// any more.
const LAYING_OUT: &str = "/.new-";

/// The contents of the namespaces below the root: node directories, finished or not.
fn below(root: &Path) -> Vec<String> {
    let namespaces = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
    namespaces
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("slipway-project-"))
        .flat_map(|entry| std::fs::read_dir(entry.path()).unwrap())
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_late_replica_makes_is_found_and_removed() {
    let Some(server) = postgres::shared("what_a_late_replica_makes").await else { return };
    let mut late = ControlPlane::new(Some(server.database("late_replica").await));
    late.set(&["--lease", "3s", "--orphan-interval", "1s"]);
    let orders = late.take_orders();
    late.start().await;
    orders.stop_before_folder(LAYING_OUT).unwrap();
    // Its loop may stop the process before the request is answered.
    let unanswered = late.declare_unanswered("web-1");
    wait::until(TIMEOUT, "the replica to stop itself", async || orders.has_stopped().unwrap())
        .await;

    let mut other = late.beside();
    other.start().await;
    let declared = other.get("/api/v1/resources?handle=web-1").await;
    let id = declared[0]["id"].as_str().unwrap().to_owned();
    other.wait_for_phase(&id, "Ready").await;
    other.assert_goes(&id).await;
    assert!(other.agents().is_empty() && below(&other.substrate_root()).is_empty());

    late.signal(Signal::Continue);
    drop(unanswered);
    // Nobody has to intervene: absence is proven a second time one lease after
    // Deleted, and what is found then is recorded and removed.
    wait::until(TIMEOUT, "the late action to be recorded and undone", async || {
        let leaks = other.get("/api/v1/leaks?state=all").await;
        let leaks = leaks.as_array().unwrap().clone();
        let left = (below(&other.substrate_root()), other.agents());
        let recorded = !leaks.is_empty() && leaks.iter().all(|leak| leak["state"] != "open");
        if recorded && left.0.is_empty() && left.1.is_empty() {
            Ok(())
        } else {
            Err(format!("left: {left:?}, leaks: {leaks:?}\n{}", late.log_tail()))
        }
    })
    .await;
    assert_eq!(other.resource(&id).await["phase"], "Deleted");
    // Both work, and the next resource is not disturbed.
    for plane in [&late, &other] {
        plane.wait_until_ready().await;
    }
    tokio::time::timeout(Duration::from_secs(40), late.assert_works("web-2")).await.unwrap();
    other.stop().await;
    late.stop().await;
}
