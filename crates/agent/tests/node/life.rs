//! An enrolled node: restart, drain, revoked key, and the ways to end.

use std::fs;
use std::time::Duration;

use slipway_agent::node::Ending;

use crate::stand_in::{Agent, NODE_ID, NodeDirectory, RegisterAnswer, StandIn, eventually};

#[tokio::test]
async fn a_restarted_node_does_not_register_again() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    directory.until_state("active").await;
    agent.stop().await;

    let before = server.calls().heartbeats.len();
    // The engine may have written the document again.
    let agent = Agent::start(&directory.path);
    let calls = server.until("a new heartbeat", |calls| calls.heartbeats.len() > before).await;
    assert_eq!(calls.registers.len(), 1);
    assert!(!directory.file("rootfs/etc/plexd/bootstrap-token").exists());
    agent.stop().await;
}

#[tokio::test]
async fn a_drain_waits_for_the_work_and_heartbeats_go_on() {
    let server = StandIn::start().await;
    server.script(|calls| calls.drain_id = Some("d-1".to_owned()));
    let directory = NodeDirectory::new(&server, &["busy_seconds: 1"]);
    let agent = Agent::start(&directory.path);
    let draining = directory.until_state("draining").await;
    assert_eq!(draining["node_id"], NODE_ID);
    assert!(server.calls().drains.is_empty(), "acknowledged before the work was done");
    let seen = server.calls().heartbeats.len();
    server
        .until("a heartbeat that says draining", |calls| {
            let later = &calls.heartbeats[seen..];
            later.iter().any(|call| call.status.as_deref() == Some("draining"))
        })
        .await;

    directory.until_state("drained").await;
    let calls = server.calls();
    let [(acknowledged, at)] = &calls.drains[..] else { panic!("{:?}", calls.drains) };
    assert_eq!(acknowledged.drain_id, "d-1");
    // The agent measures in whole milliseconds of another clock.
    let worked = *at - calls.enrolled.unwrap();
    assert!(worked >= Duration::from_millis(990), "acknowledged after {worked:?}");
    agent.stop().await;
}

#[tokio::test]
async fn an_acknowledgement_is_repeated_until_it_is_accepted() {
    let server = StandIn::start().await;
    server.script(|calls| {
        calls.drain_id = Some("d-2".to_owned());
        calls.drain_failures = 2;
    });
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    directory.until_state("drained").await;
    assert_eq!(server.calls().drains.len(), 3);

    // The key is revoked now. A drained node tolerates that, also after a
    // restart.
    let before = server.calls().heartbeats.len();
    agent.stop().await;
    let agent = Agent::start(&directory.path);
    server.until("a heartbeat after the drain", |calls| calls.heartbeats.len() > before).await;
    let status = directory.until_state("drained").await;
    assert!(!status["message"].as_str().unwrap().contains("401"), "{status}");
    agent.stop().await;
    assert_eq!(server.calls().drains.len(), 3);
}

#[tokio::test]
async fn a_node_that_sends_too_often_waits_as_long_as_it_is_told() {
    let server = StandIn::start().await;
    server.script(|calls| calls.heartbeat_limits.extend([1, 2]));
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    let calls = server.until("a third heartbeat", |calls| calls.paced.len() > 2).await;
    for pair in calls.paced[..3].windows(2) {
        let (told, waited) = (pair[0].1.unwrap(), pair[1].0 - pair[0].0);
        assert!(waited >= Duration::from_secs(told), "told {told} s, came after {waited:?}");
    }
    agent.stop().await;
}

#[tokio::test]
async fn a_revoked_key_is_shown() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    directory.until_state("active").await;
    server.script(|calls| {
        calls.revoked = true;
        calls.register_script.push_back(RegisterAnswer::Refuse(409, "token_consumed"));
    });
    eventually("the status names 401", || {
        directory.status()["message"].as_str().is_some_and(|text| text.contains("401"))
    })
    .await;
    assert_eq!(directory.status()["state"], "active");
    agent.stop().await;
}

/// The registry was restored to a state before this node enrolled.
#[tokio::test]
async fn a_node_that_its_server_forgot_enrols_anew_with_its_first_key() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    directory.until_state("active").await;
    server.script(|calls| calls.revoked = true);
    let calls = server.until("a second register", |calls| calls.registers.len() > 1).await;
    let [first, second] = &calls.registers[..] else { panic!("{:?}", calls.registers) };
    assert_eq!(first.request.public_key, second.request.public_key);
    let heard = calls.heartbeats.len();
    server.until("heartbeats again", |calls| calls.heartbeats.len() > heard + 2).await;
    assert_eq!(server.calls().registers.len(), 2);
    assert!(!directory.file("rootfs/etc/plexd/bootstrap-token").exists());
    agent.stop().await;
}

#[tokio::test]
async fn the_agent_ends_when_its_directory_is_removed() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    directory.until_state("active").await;
    fs::remove_dir_all(&directory.path).unwrap();
    assert_eq!(agent.ending().await.unwrap(), Ending::DirectoryGone);
    assert!(!directory.path.exists(), "the agent wrote into its removed directory");
}

#[tokio::test]
async fn the_agent_ends_when_another_directory_has_its_name() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    directory.until_state("active").await;
    fs::rename(&directory.path, directory.path.with_extension("gone")).unwrap();
    fs::create_dir(&directory.path).unwrap();
    assert_eq!(agent.ending().await.unwrap(), Ending::DirectoryGone);
    assert_eq!(fs::read_dir(&directory.path).unwrap().count(), 0);
}

#[tokio::test]
async fn the_agent_ends_without_its_server() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &["orphan_after_ms: 400"]);
    let agent = Agent::start(&directory.path);
    // Longer than the orphan time: contact renews it.
    server.until("many heartbeats", |calls| calls.heartbeats.len() > 30).await;
    drop(server);
    assert_eq!(agent.ending().await.unwrap(), Ending::Orphaned);
}
