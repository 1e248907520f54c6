//! Stopping: SIGTERM finishes work in progress within a limit, and a second one
//! does not wait. The next start continues what was left.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use slipway_testkit::process::Signal;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

/// How long loops and requests may take after the signal.
const DRAIN_LIMIT: Duration = Duration::from_secs(15);
const COUNT: usize = 12;

/// A control plane in the middle of an action that lasts until the returned
/// file is closed: the engine waits for the lock of the node's directory.
/// Returns the resource too.
async fn amid_a_slow_action(plane: &mut ControlPlane, drain: &str) -> (String, File) {
    // An action may take a third of the lease.
    plane.set(&["--lease", "45s", "--drain-timeout", drain]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let directory = File::open(plane.node_directory(&id).await).unwrap();
    directory.lock().unwrap();
    plane.delete(&id).await;
    let inode = format!(":{} ", directory.metadata().unwrap().ino());
    wait::until(TIMEOUT, "the deletion to wait for the lock", async || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains("-> FLOCK") && line.contains(&inode))
    })
    .await;
    (id, directory)
}

/// After a restart it finishes what was left: no process, each event once.
async fn assert_taken_up(plane: &mut ControlPlane, id: &str) {
    plane.start().await;
    plane.wait_for_phase(id, "Deleted").await;
    plane.assert_each_event_once(id, &["Requested", "Ready", "Deleting", "Deleted"]).await;
    assert!(plane.agents().is_empty());
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_finished_before_the_end() {
    let mut plane = ControlPlane::new(None);
    let (id, lock) = amid_a_slow_action(&mut plane, "15s").await;
    plane.signal(Signal::Terminate);
    wait::until(TIMEOUT, "it to be stopping", async || {
        plane.log_text().contains("taking no new work")
    })
    .await;
    assert!(!plane.agents().is_empty(), "the action waits");
    drop(lock);
    assert!(plane.ended().await.success(), "{}", plane.log_tail());
    let log = plane.log_text();
    assert!(!log.contains("not everything was finished"), "{log}");
    // The agent released its lock, which ends the action, and is ending itself.
    wait::until(TIMEOUT, "the action to have been finished", async || plane.agents().is_empty())
        .await;
    assert_taken_up(&mut plane, &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_longer_than_its_limit() {
    let mut plane = ControlPlane::new(None);
    let (id, lock) = amid_a_slow_action(&mut plane, "1s").await;
    let told = Instant::now();
    plane.stop().await;
    assert!(told.elapsed() >= Duration::from_secs(1), "{:?}", told.elapsed());
    // One second for the loops, one for hanging file work, and some slack.
    assert!(told.elapsed() < Duration::from_secs(6), "{:?}", told.elapsed());
    assert!(plane.log_text().contains("not everything was finished"), "{}", plane.log_tail());
    drop(lock);
    assert_taken_up(&mut plane, &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once() {
    let mut plane = ControlPlane::new(None);
    let (id, lock) = amid_a_slow_action(&mut plane, "60s").await;
    plane.signal(Signal::Terminate);
    wait::until(TIMEOUT, "it to be stopping", async || {
        plane.log_text().contains("taking no new work")
    })
    .await;
    let told = Instant::now();
    plane.signal(Signal::Terminate);
    let status = plane.ended().await;
    assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
    assert_eq!(status.code(), Some(1), "{}", plane.log_tail());
    assert!(plane.log_text().contains("error[stopped_at_once]"), "{}", plane.log_tail());
    drop(lock);
    assert_taken_up(&mut plane, &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn told_to_stop_while_provisioning_it_ends_in_time_and_goes_on_later() {
    for mut plane in ControlPlane::each("told_to_stop_while_provisioning").await {
        plane.start().await;
        let mut ids = Vec::new();
        for number in 0..COUNT {
            ids.push(plane.declare(&format!("web-{number}"), 0).await);
        }
        wait::until(TIMEOUT, "a first agent process", async || !plane.agents().is_empty()).await;
        let asked = Instant::now();
        plane.stop().await;
        let took = asked.elapsed();
        assert!(took < DRAIN_LIMIT, "it took {took:?}: {}", plane.log_tail());
        let log = plane.log_text();
        assert!(!log.contains("not everything was finished in time"), "{}", plane.log_tail());
        assert!(log.contains("stopped"), "{}", plane.log_tail());

        plane.start().await;
        for id in &ids {
            let ready = plane.wait_for_phase(id, "Ready").await;
            assert_eq!(ready["blockers"].as_array().map(Vec::len), Some(0), "{ready}");
            plane.agent(id).await;
            plane.assert_each_event_once(id, &["Requested", "Ready"]).await;
        }
        assert_eq!(plane.agents().len(), COUNT, "one process each");

        // In the middle of taking them down.
        for id in &ids {
            plane.delete(id).await;
        }
        plane.stop().await;
        plane.start().await;
        for id in &ids {
            plane.wait_for_phase(id, "Deleted").await;
        }
        assert!(plane.agents().is_empty());
        plane.stop().await;
    }
}
