//! Enrolment, with everything that may go wrong.

use std::fs;

use slipway_agent::node::Error;
use slipway_wire::nodes::plexd::Capabilities;

use crate::stand_in::{Agent, NODE_ID, NodeDirectory, RegisterAnswer, StandIn, TOKEN, mode};

#[tokio::test]
async fn a_node_enrols_and_forgets_its_token() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    let calls = server.until("two heartbeats", |calls| calls.heartbeats.len() > 1).await;

    let [registered] = &calls.registers[..] else { panic!("{:?}", calls.registers) };
    let request = &registered.request;
    assert_eq!(registered.authorization, format!("Bearer {TOKEN}"));
    assert_eq!(request.token.as_deref(), Some(TOKEN));
    assert_eq!(request.bootstrap_token.as_deref(), Some(TOKEN));
    assert_eq!(request.resource_handle.as_deref(), Some("edge-1"));
    assert_eq!(request.hostname.as_deref(), Some("edge-1.example"));
    assert_eq!(request.project_id.as_deref(), Some("01890000-0000-7000-8000-00000000000a"));
    let drain = Capabilities::Names(vec!["drain".to_owned()]);
    assert_eq!(request.capabilities, Some(drain));
    assert_eq!(request.nonce.as_ref().map(String::len), Some(32));
    assert!(registered.key_was_stored, "the key must be on disk before it is announced");

    let status = directory.until_state("active").await;
    assert_eq!(status["node_id"], NODE_ID);
    assert_eq!(mode(&directory.file("rootfs/etc/plexd/config.yaml")), 0o644);
    assert!(!directory.file("rootfs/etc/plexd/bootstrap-token").exists());
    assert_eq!(mode(&directory.file("state")), 0o700);
    assert_eq!(mode(&directory.file("state/key.pk8")), 0o600);
    assert_eq!(mode(&directory.file("state/identity.json")), 0o600);
    let evidence: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.file("agent.json")).unwrap()).unwrap();
    assert_eq!(evidence["pid"], std::process::id());
    agent.stop().await;
}

#[tokio::test]
async fn the_token_lies_in_the_rootfs_for_its_owner_alone_until_it_is_used() {
    let server = StandIn::start().await;
    server.script(|calls| {
        calls.register_script.push_back(RegisterAnswer::Refuse(403, "no"));
    });
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    directory.until_state("refused").await;
    let token = directory.file("rootfs/etc/plexd/bootstrap-token");
    assert_eq!(mode(&token), 0o600);
    assert_eq!(fs::read_to_string(token).unwrap(), TOKEN);
    agent.stop().await;
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_key() {
    let server = StandIn::start().await;
    server.script(|calls| {
        calls.register_script.extend([RegisterAnswer::Lost, RegisterAnswer::Later]);
    });
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    directory.until_state("active").await;
    let calls = server.calls();
    assert_eq!(calls.registers.len(), 3);
    let keys: Vec<_> = calls.registers.iter().map(|call| &call.request.public_key).collect();
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    assert!(calls.registers.iter().all(|call| call.key_was_stored));
    agent.stop().await;
}

#[tokio::test]
async fn a_killed_agent_registers_again_with_its_first_key() {
    let server = StandIn::start().await;
    server.script(|calls| calls.register_script.push_back(RegisterAnswer::Lost));
    let directory = NodeDirectory::new(&server, &[]);
    let agent = Agent::start(&directory.path);
    server.until("the first register", |calls| !calls.registers.is_empty()).await;
    agent.stop().await;

    let agent = Agent::start(&directory.path);
    directory.until_state("active").await;
    let calls = server.calls();
    let first = &calls.registers.first().unwrap().request.public_key;
    let last = &calls.registers.last().unwrap().request.public_key;
    assert_eq!(first, last);
    agent.stop().await;
}

#[tokio::test]
async fn a_refused_node_waits_for_another_document() {
    for (status, code) in [
        (400, "public_key_invalid"),
        (401, "unauthorized"),
        (403, "token_expired"),
        (404, "resource_not_found"),
        (409, "conflict"),
        (422, "unprocessable"),
    ] {
        let server = StandIn::start().await;
        server.script(|calls| {
            calls.register_script.push_back(RegisterAnswer::Refuse(status, code));
        });
        let directory = NodeDirectory::new(&server, &[]);
        let agent = Agent::start(&directory.path);
        let refused = directory.until_state("refused").await;
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(&status.to_string()) && message.contains(code), "{message}");
        assert_eq!(server.calls().registers.len(), 1, "a refusal must not be repeated");

        let second = "psb_test_projectid_node_bbbbbbbbbbbbbbbbbbbbbbbb";
        directory.user_data(&server.url, second, &[]);
        directory.until_state("active").await;
        let calls = server.calls();
        assert_eq!(calls.registers.len(), 2);
        assert_eq!(calls.registers[1].request.token.as_deref(), Some(second));
        agent.stop().await;
    }
}

#[tokio::test]
async fn a_new_document_is_used_even_while_the_server_is_away() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    // Nothing listens on port 1 of the loopback address.
    directory.user_data("http://127.0.0.1:1", TOKEN, &[]);
    let agent = Agent::start(&directory.path);
    crate::stand_in::eventually("the refused connection is shown", || {
        directory.status()["message"].as_str().is_some_and(|text| text.contains("refused"))
    })
    .await;
    assert_eq!(directory.status()["state"], "enrolling");
    directory.user_data(&server.url, TOKEN, &[]);
    directory.until_state("active").await;
    agent.stop().await;
}

#[tokio::test]
async fn a_document_without_an_address_is_a_clear_error() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    let document =
        "#cloud-config\nwrite_files:\n- {path: /etc/plexd/config.yaml, content: 'hostname: a'}\n";
    fs::write(directory.file("user-data"), document).unwrap();
    let error = Agent::start(&directory.path).ending().await.unwrap_err();
    assert!(matches!(error, Error::Configuration { .. }), "{error:?}");
    assert!(error.to_string().contains("api_url is missing"), "{error}");
    assert!(directory.status()["message"].as_str().unwrap().contains("api_url is missing"));
}

#[tokio::test]
async fn a_node_without_a_document_lives_and_enrols_once_it_gets_one() {
    let server = StandIn::start().await;
    let directory = NodeDirectory::new(&server, &[]);
    fs::remove_file(directory.file("user-data")).unwrap();
    let agent = Agent::start(&directory.path);
    let status = directory.until_state("refused").await;
    assert!(status["message"].as_str().unwrap().contains("no user-data"), "{status}");
    directory.user_data(&server.url, TOKEN, &[]);
    directory.until_state("active").await;
    agent.stop().await;
}
