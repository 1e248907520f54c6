//! `--wait`: one line per change, and an end for every outcome.

use std::time::{Duration, Instant};

use serde_json::json;
use slipway_cli::{Exit, Traits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::stand_in::{ID, Reply, SILENCE, StandIn, mk_deletion, mk_problem, mk_resource, run};

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

/// An unanswered poll must not outlast the wait: the client alone would allow it 30 s.
#[tokio::test]
async fn a_wait_ends_in_time_at_a_server_that_fell_silent() {
    let mut script = phases(&["Pending", "Pending"]);
    script.push(Reply::of(SILENCE, json!({})));
    let server = StandIn::new(script).await;
    let line: Vec<_> = CREATE.into_iter().chain(["--timeout", "2500ms"]).collect();
    let begun = Instant::now();
    let ended = server.run(&line).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(ended.exit, Exit::Unreachable, "{ended:?}");
    assert!(ended.errors.contains("no answer within"), "{ended:?}");
}

#[tokio::test]
async fn a_wait_for_a_server_that_stays_away_says_that() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // Accepts the declaration, and is gone before the first poll.
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        drop(listener);
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            connection.read_buf(&mut request).await.unwrap();
        }
        let body = mk_resource("Pending").to_string();
        let head = "HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length";
        let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
        connection.write_all(answer.as_bytes()).await.unwrap();
    });
    let line: Vec<_> = CREATE.into_iter().chain(["--timeout", "300ms"]).collect();
    let ended = run(&url, &line, Traits::default(), "").await;
    assert_eq!(ended.exit, Exit::Unreachable, "{ended:?}");
    assert!(ended.errors.contains("Pending · cannot reach"), "it was waited for: {ended:?}");
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

/// The first request of `slipway wait` opens the event stream, which is no use here.
fn without_events(replies: Vec<Reply>) -> Vec<Reply> {
    let refused = Reply::of(503, mk_problem(503, "too_many_streams"));
    std::iter::once(refused).chain(replies).collect()
}

fn found(phase: &str) -> Reply {
    Reply::of(200, json!([mk_resource(phase)]))
}

#[tokio::test]
async fn what_is_so_already_answers_at_once() {
    let script = without_events(vec![found("Ready"), Reply::of(200, mk_resource("Ready"))]);
    let server = StandIn::new(script).await;
    let ended = server.run(&["wait", "--for", "phase=Ready", "web-1", "resource/web-1"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(ended.output, "KIND      NAME   STATE\nresource  web-1  Ready\n");
    assert_eq!(server.lines().len(), 3, "named twice is waited for once");

    let server = StandIn::new(without_events(vec![Reply::of(200, json!([]))])).await;
    let ended = server.run(&["wait", "--for", "deleted", "web-1", "-o", "name"]).await;
    assert_eq!((ended.exit, ended.output.as_str()), (Exit::Success, "resource/web-1\n"));
    let gone = Reply::of(404, mk_problem(404, "project_not_found"));
    let server = StandIn::new(without_events(vec![gone])).await;
    let ended = server.run(&["wait", "--for", "deleted", "project/shop"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
}

#[tokio::test]
async fn a_wait_for_several_ends_with_the_first_that_cannot_come() {
    let begin = || vec![found("Pending"), Reply::of(200, mk_resource("Pending"))];
    for (phase, exit, text) in [
        ("Failed", Exit::EndedInFailed, "no quota"),
        ("Deregistering", Exit::Refused, "being deleted"),
    ] {
        let mut script = begin();
        script.push(Reply::of(200, mk_resource(phase)));
        let server = StandIn::new(without_events(script)).await;
        let ended = server.run(&["wait", "--for", "phase=Ready", "web-1"]).await;
        assert_eq!(ended.exit, exit, "{ended:?}");
        assert!(ended.errors.contains(text), "{ended:?}");
    }
    let server = StandIn::new(without_events(begin())).await;
    let line = ["wait", "--for", "phase=Ready", "web-1", "--timeout", "50ms"];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::TimedOut, "{ended:?}");
    assert!(ended.errors.contains("still Pending after 50ms"), "{ended:?}");
    let server = StandIn::new(without_events(vec![Reply::of(200, json!([]))])).await;
    let ended = server.run(&["wait", "--for", "phase=Ready", "web-1"]).await;
    assert_eq!(ended.exit, Exit::NotFound, "{ended:?}");
}

#[tokio::test]
async fn a_wait_that_makes_no_sense_is_refused_before_anything_is_sent() {
    let server = StandIn::new(Vec::new()).await;
    for (thing, text) in [
        ("project/shop", "a project has no phase"),
        ("thing/x", "is no KIND/NAME"),
        ("resource/", "is no KIND/NAME"),
    ] {
        let ended = server.run(&["wait", "--for", "phase=Ready", thing]).await;
        assert_eq!(ended.exit, Exit::Usage, "{ended:?}");
        assert!(ended.errors.contains(text), "{ended:?}");
    }
    assert!(server.lines().is_empty());
}
