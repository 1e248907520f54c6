//! Deletion of a node: SIGTERM, then SIGKILL, and never the wrong node.

use std::fs;
use std::time::Duration;

use rustix::process::{Signal, kill_process, test_kill_process};
use slipway_app::ports::substrate::{Error, Substrate};
use slipway_core::broker::observation::{CompositeReport, LiveComposite};

use crate::support::{Bench, EndOnDrop, address, mk_composite, pid};

#[tokio::test]
async fn a_deleted_node_is_asked_to_end_and_its_directory_goes() {
    let bench = Bench::new();
    let live = bench.apply_until_ready().await;
    bench.delete_until_absent(&live.uid).await;
    assert!(!bench.directory().exists());
    let gone = bench.root().join(".gone");
    assert_eq!(fs::read_dir(gone).unwrap().count(), 0, "nothing waits to be removed");
    // Again, and of a node that never existed.
    bench.engine.delete(&address(), &live.uid).await.unwrap();

    let anew = bench.apply_until_ready().await;
    assert_ne!(anew.uid, live.uid);
}

#[tokio::test]
async fn a_node_that_does_not_listen_is_killed_after_the_grace() {
    let grace = Duration::from_millis(400);
    let bench = Bench::with_grace(grace);
    let live = bench.apply_until_ready().await;
    let _end = EndOnDrop::new(&live);
    kill_process(pid(&live), Signal::STOP).unwrap();
    bench.until("every thread has stopped", |_| threads_are_in(&live, 'T')).await;

    let begun = tokio::time::Instant::now();
    bench.engine.delete(&address(), &live.uid).await.unwrap();
    let leaving = bench.live().await;
    assert!(leaving.terminating && leaving.ready, "{leaving:?}");
    let refused = bench.engine.apply(&mk_composite().rendered()).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");

    bench.delete_until_absent(&live.uid).await;
    assert!(begun.elapsed() >= grace, "killed after {:?}", begun.elapsed());
    // Killed, and perhaps not yet reaped by the task that awaits it.
    assert!(test_kill_process(pid(&live)).is_err() || threads_are_in(&live, 'Z'), "it still runs");
}

/// Whether all threads of the agent are in this state of `/proc`. SIGSTOP takes
/// effect when a process next runs, and SIGTERM would overtake it.
fn threads_are_in(live: &LiveComposite, state: char) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid(live).as_raw_nonzero())) else {
        return false;
    };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.contains(&format!(") {state} "))
    })
}

#[tokio::test]
async fn a_node_without_an_agent_can_be_deleted() {
    let bench = Bench::new();
    let live = bench.apply_until_ready().await;
    kill_process(pid(&live), Signal::KILL).unwrap();
    bench.until("the lock is free", |report| report.live().is_some_and(|live| !live.ready)).await;
    bench.engine.delete(&address(), &live.uid).await.unwrap();
    assert!(matches!(bench.report().await, CompositeReport::Absent));
}

#[tokio::test]
async fn a_node_with_another_uid_is_not_deleted() {
    let bench = Bench::new();
    let live = bench.apply_until_ready().await;
    let refused = bench.engine.delete(&address(), "the-uid-of-the-one-before").await;
    let Err(Error::Conflict(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains(&live.uid), "{message}");
    let after = bench.live().await;
    assert!(after.ready && !after.terminating, "{after:?}");
}

#[tokio::test]
async fn a_crash_between_moving_and_removing_is_finished() {
    let bench = Bench::new();
    let live = bench.apply_until_ready().await;
    kill_process(pid(&live), Signal::KILL).unwrap();
    bench.until("the lock is free", |report| report.live().is_some_and(|live| !live.ready)).await;
    let leave = || {
        let gone = bench.root().join(".gone").join(&live.uid);
        fs::create_dir_all(&gone).unwrap();
        fs::write(gone.join("user-data"), "left over").unwrap();
        gone
    };

    let gone = bench.root().join(".gone").join(&live.uid);
    fs::create_dir_all(gone.parent().unwrap()).unwrap();
    fs::rename(bench.directory(), &gone).unwrap();
    assert!(matches!(bench.report().await, CompositeReport::Absent));
    assert!(!gone.exists(), "the observation did not finish it");

    let gone = leave();
    bench.engine.delete(&address(), &live.uid).await.unwrap();
    assert!(!gone.exists(), "the delete did not finish it");

    let gone = leave();
    let unfinished = bench.directory().with_file_name(".new-left-over");
    fs::create_dir_all(&unfinished).unwrap();
    bench.another_engine();
    assert!(!gone.exists() && !unfinished.exists(), "the start did not finish it");
}
