//! `--wait`: one line per change, and an end for every outcome.

use slipway_cli::Exit;

use crate::stand_in::{ID, Reply, StandIn, mk_deletion, mk_problem, mk_resource};

const CREATE: [&str; 7] =
    ["resource", "create", "--handle", "web-1", "--blueprint", "local-node", "--wait"];

fn phases(phases: &[&str]) -> Vec<Reply> {
    phases.iter().map(|phase| Reply::of(200, mk_resource(phase))).collect()
}

#[tokio::test]
async fn a_wait_shows_each_change_once_and_ends_ready() {
    let script = phases(&["Pending", "Pending", "Provisioning", "Provisioning", "Ready"]);
    let server = StandIn::new(script).await;
    let ended = server.run(&CREATE).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let shown: Vec<_> =
        ended.errors.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(shown, ["Pending", "Provisioning", "Ready"], "{ended:?}");
    assert!(ended.output.contains("Ready"), "the result is the last state: {ended:?}");
}

#[tokio::test]
async fn a_wait_ends_in_failed_with_the_reason() {
    let server = StandIn::new(phases(&["Pending", "Failed"])).await;
    let ended = server.run(&CREATE).await;
    assert_eq!(ended.exit, Exit::EndedInFailed);
    assert!(ended.errors.contains("no quota"), "{ended:?}");
    assert!(ended.errors.contains("slipway resource explain web-1"), "{ended:?}");
}

#[tokio::test]
async fn a_wait_gives_up_in_time() {
    let server = StandIn::new(phases(&["Pending"])).await;
    let line: Vec<_> = CREATE.into_iter().chain(["--timeout", "1ms"]).collect();
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::TimedOut);
    assert!(ended.errors.contains("still Pending"), "{ended:?}");
}

#[tokio::test]
async fn waiting_for_what_is_being_deleted_ends_at_once() {
    let server = StandIn::new(phases(&["Pending", "Deregistering"])).await;
    let ended = server.run(&CREATE).await;
    assert_eq!(ended.exit, Exit::Refused);
    assert!(ended.errors.contains("being deleted"), "{ended:?}");
}

#[tokio::test]
async fn a_server_that_is_busy_for_a_moment_is_waited_for() {
    let mut script = phases(&["Pending"]);
    script.push(Reply::of(503, mk_problem(503, "unavailable")));
    script.extend(phases(&["Ready"]));
    let server = StandIn::new(script).await;
    let ended = server.run(&CREATE).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.errors.contains("it is so"), "the trouble is shown: {ended:?}");
}

#[tokio::test]
async fn a_deletion_is_waited_for_to_its_end() {
    let mut script = phases(&["Ready"]);
    script.push(Reply::of(202, mk_deletion()));
    script.extend(phases(&["Deregistering", "Deleted"]));
    script.push(Reply::of(200, mk_deletion()));
    let server = StandIn::new(script).await;
    let ended = server.run(&["resource", "delete", ID, "--yes", "--wait"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.lines().last().unwrap(), &format!("GET /api/v1/deletions/{ID}"));
}
