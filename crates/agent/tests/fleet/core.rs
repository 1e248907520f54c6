//! What every agent of Fleet does, whatever it deploys to: polls, decides, reports.

use std::fs;
use std::path::Path;
use std::time::Duration;

use slipway_agent::fleet::{Error, Key, Options, Target, run_until};

use crate::directory::{Folder, objects};
use crate::stand_in::{AGENT, Agent, StandIn, config_map, run_once, stack};

#[tokio::test]
async fn a_change_is_carried_out_at_once_and_reported_once() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    // Nothing waits for a poll: the server holds its answer back until there is a change.
    let options = Options { poll: Duration::from_secs(30), ..server.options(folder.target()) };
    let agent = Agent::start(options);
    let begun = tokio::time::Instant::now();
    let first = server.offer(1, &config_map("n", "a", "1"));
    server.reported(&first, "DEPLOY", "SUCCESS").await;
    let second = server.offer(1, &config_map("n", "a", "2"));
    server.reported(&second, "DEPLOY", "SUCCESS").await;
    let marker = server.mark(1);
    server.reported(&marker, "DELETE", "SUCCESS").await;
    assert!(begun.elapsed() < Duration::from_secs(20), "it waited for a poll");
    let calls = server.calls();
    assert_eq!(calls.events.len(), 3, "{:?}", calls.events);
    let health: Vec<_> = calls.healths.iter().flat_map(|one| &one.deployment_objects).collect();
    assert_eq!(health.len(), 2, "{health:?}");
    assert!(health.iter().all(|one| one.status == "healthy"), "{health:?}");
    assert_eq!(calls.heartbeats[0].capabilities, ["keep"]);
    agent.stop().await;
}

#[tokio::test]
async fn a_server_of_the_published_protocol_alone_will_do() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    server.script(|calls| calls.is_plain = true);
    let options = Options { poll: Duration::from_millis(300), ..server.options(folder.target()) };
    let agent = Agent::start(options);
    let first = server.offer(1, &config_map("n", "a", "1"));
    server.reported(&first, "DEPLOY", "SUCCESS").await;
    let begun = tokio::time::Instant::now();
    let calls = server.polled(3).await;
    assert!(begun.elapsed() > Duration::from_millis(500), "it polls without a pause");
    assert_eq!(calls.events.len(), 1);
    agent.stop().await;
}

#[tokio::test]
async fn an_agent_acts_only_while_it_is_active() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    server.script(|calls| calls.status = "INACTIVE".to_owned());
    let object = server.offer(1, &config_map("n", "a", "1"));
    let refused = run_once(&server, folder.target()).await.unwrap_err();
    assert!(matches!(&refused, Error::Inactive { .. }), "{refused}");
    assert!(objects(folder.path()).is_empty());
    assert_eq!(server.calls().polls, 0, "an inactive agent asks for nothing");
    server.script(|calls| calls.status = "ACTIVE".to_owned());
    let agent = Agent::start(server.options(folder.target()));
    server.reported(&object, "DEPLOY", "SUCCESS").await;
    // Deactivated while it runs: the marker waits.
    server.script(|calls| calls.status = "INACTIVE".to_owned());
    let marker = server.mark(1);
    let heartbeats = server.calls().heartbeats.len();
    server.until("heartbeats", |calls| calls.heartbeats.len() > heartbeats + 1).await;
    assert_eq!(objects(folder.path()).len(), 1);
    server.script(|calls| calls.status = "ACTIVE".to_owned());
    server.reported(&marker, "DELETE", "SUCCESS").await;
    assert!(objects(folder.path()).is_empty());
    agent.stop().await;
}

#[tokio::test]
async fn a_failure_is_reported_once_per_cause_and_tried_again() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let agent = Agent::start(server.options(folder.target()));
    let wrong = server.offer(1, "apiVersion: v1\nkind: ConfigMap\n");
    let good = server.offer(2, &config_map("n", "b", "1"));
    let report = server.reported(&wrong, "DEPLOY", "FAILURE").await;
    assert!(report.message.unwrap().contains("metadata.name"));
    server.reported(&good, "DEPLOY", "SUCCESS").await;
    let right = server.offer(1, &config_map("n", "a", "1"));
    server.reported(&right, "DEPLOY", "SUCCESS").await;
    let calls = server.polled(2).await;
    assert_eq!(calls.events.len(), 3, "{:?}", calls.events);
    agent.stop().await;
}

#[tokio::test]
async fn a_marker_with_content_is_refused_and_removes_nothing() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let object = server.offer(1, &config_map("n", "a", "1"));
    run_once(&server, folder.target()).await.unwrap();
    server.reported(&object, "DEPLOY", "SUCCESS").await;
    let marker = server.mark_with(1, &config_map("n", "a", "1"));
    let incomplete = run_once(&server, folder.target()).await.unwrap_err();
    assert!(incomplete.to_string().contains("marker with content"), "{incomplete}");
    let report = server.reported(&marker, "DELETE", "FAILURE").await;
    assert!(report.message.unwrap().contains("contradicts itself"));
    assert_eq!(objects(folder.path()).len(), 1);
    // Said once, also by the next process.
    run_once(&server, folder.target()).await.unwrap_err();
    assert_eq!(server.calls().events.len(), 2);
}

/// A report that was not taken survives the process.
#[tokio::test]
async fn a_report_that_was_not_taken_is_made_by_the_next_process() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let object = server.offer(1, &config_map("n", "a", "1"));
    server.script(|calls| calls.failing_events = 1);
    let unavailable = run_once(&server, folder.target()).await.unwrap_err();
    assert!(matches!(&unavailable, Error::Unavailable(_)), "{unavailable}");
    assert!(!unavailable.to_string().contains(crate::stand_in::KEY), "{unavailable}");
    assert_eq!(objects(folder.path()).len(), 1);
    run_once(&server, folder.target()).await.unwrap();
    server.reported(&object, "DEPLOY", "SUCCESS").await;
    run_once(&server, folder.target()).await.unwrap();
    assert_eq!(server.calls().events.len(), 1);
}

/// Ten stacks of ten objects, of which the answer lacks some.
async fn ten_stacks(server: &StandIn, folder: &Folder) {
    for number in 0..10 {
        let content: String =
            (0..10).map(|index| config_map("n", &format!("s{number}-{index}"), "1")).collect();
        server.offer(number, &content);
    }
    run_once(server, folder.target()).await.unwrap();
    assert_eq!(objects(folder.path()).len(), 100);
}

#[tokio::test]
async fn an_absent_stack_is_removed_after_two_equal_answers_and_reported() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    ten_stacks(&server, &folder).await;
    let object = server.calls().offered[&stack(3)].id.clone();
    let agent = Agent::start(server.options(folder.target()));
    server.polled(2).await;
    // Errors and empty answers in turn remove nothing.
    let offered = server.calls().offered;
    for _ in 0..3 {
        server.script(|calls| {
            calls.failing_polls = 1;
            calls.offered.clear();
        });
        server.until("the error", |calls| calls.failing_polls == 0).await;
        server.polled(1).await;
        server.script(|calls| {
            calls.failing_polls = 1;
            calls.offered = offered.clone();
        });
        server.until("the error", |calls| calls.failing_polls == 0).await;
        server.polled(1).await;
    }
    assert_eq!(objects(folder.path()).len(), 100);
    server.withdraw(3);
    server.reported(&object, "PRUNE", "SUCCESS").await;
    assert_eq!(objects(folder.path()).len(), 90);
    agent.stop().await;
}

#[tokio::test]
async fn a_large_prune_waits_until_exactly_it_is_confirmed() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    ten_stacks(&server, &folder).await;
    (0..3).for_each(|number| server.withdraw(number));
    let refused = run_once(&server, folder.target()).await.unwrap_err();
    assert!(refused.to_string().contains("30 of 100 objects"), "{refused}");
    assert_eq!(objects(folder.path()).len(), 100);
    let refusal = server.calls().refusals.pop().unwrap();
    assert_eq!((refusal.objects, refusal.total, refusal.stacks.len()), (30, 100, 3));
    // What was confirmed is something else.
    server.script(|calls| calls.confirmed = vec!["0".repeat(64)]);
    run_once(&server, folder.target()).await.unwrap_err();
    assert_eq!(objects(folder.path()).len(), 100);

    let agent = Agent::start(server.options(folder.target()));
    server.until("the refusal", |calls| calls.refusals.len() > 2).await;
    server.script(|calls| calls.confirmed = vec![refusal.digest]);
    let is_pruned = |calls: &crate::stand_in::Calls| {
        calls.events.iter().filter(|event| event.event_type == "PRUNE").count() == 3
    };
    server.until("three prunes", is_pruned).await;
    assert_eq!(objects(folder.path()).len(), 70);
    // The refusal is over.
    let is_over = |calls: &crate::stand_in::Calls| {
        calls.refusals.last().is_some_and(|refusal| refusal.objects == 0)
    };
    server.until("the end of the refusal", is_over).await;
    agent.stop().await;
}

#[tokio::test]
async fn a_wrong_key_or_name_ends_the_command() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let named =
        |name: &str| Options { name: Some(name.to_owned()), ..server.options(folder.target()) };
    let other = Agent::start(named("two")).ending().await.unwrap_err();
    assert!(matches!(&other, Error::OtherAgent { .. }), "{other}");
    assert!(other.is_usage());
    let options = Options {
        once: true,
        key: Key::Text("slipway_x_y".to_owned()),
        ..server.options(folder.target())
    };
    let refused = run_until(options, std::future::pending()).await.unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
    let missing =
        Options { key: Key::File(folder.path().join("no-key")), ..server.options(folder.target()) };
    let missing = run_until(missing, std::future::pending()).await.unwrap_err();
    assert!(matches!(&missing, Error::File { .. }), "{missing}");
    let wrong = Options { server: "slipway".to_owned(), ..server.options(folder.target()) };
    let wrong = run_until(wrong, std::future::pending()).await.unwrap_err();
    assert!(wrong.to_string().contains("--server"), "{wrong}");
}

/// The key was rotated, and its file replaced.
#[tokio::test]
async fn a_rotated_key_is_read_again() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("key");
    fs::write(&key, "slipway_old_key\n").unwrap();
    let options = Options { key: Key::File(key.clone()), ..server.options(folder.target()) };
    let object = server.offer(1, &config_map("n", "a", "1"));
    let agent = Agent::start(options);
    fs::write(&key, format!("{}\n", crate::stand_in::KEY)).unwrap();
    server.reported(&object, "DEPLOY", "SUCCESS").await;
    agent.stop().await;
}

#[tokio::test]
async fn a_folder_of_another_agent_is_refused() {
    let (server, folder) = (StandIn::start().await, Folder::new());
    run_once(&server, folder.target()).await.unwrap();
    let owner = folder.path().join(".slipway/owner");
    let text = fs::read_to_string(&owner).unwrap();
    fs::write(&owner, text.replace(AGENT, "01890000-0000-7000-8000-00000000ffff")).unwrap();
    let refused = run_once(&server, folder.target()).await.unwrap_err();
    assert!(matches!(&refused, Error::OtherOwner { .. }), "{refused}");
    let target = Target::Directory { path: Path::new("/proc/nothing/here").to_owned() };
    let unusable = run_once(&server, target).await.unwrap_err();
    assert!(matches!(&unusable, Error::Folder { .. }), "{unusable}");
}
