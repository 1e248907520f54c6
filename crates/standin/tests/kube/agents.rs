//! Nodes that boot and end with their composite.

use std::path::Path;

use kube::api::DeleteParams;
use serde_json::{Value, json};
use slipway_standin::{AgentMode, Options, run};
use slipway_testkit::kube::{ADMIN, KubeEnvironment, OTHER_ADMIN};
use slipway_testkit::process::processes_with_argument;
use slipway_testkit::wait::until;

use crate::control_plane::{ControlPlane, Node};
use crate::world::{
    TIMEOUT, World, composite, composites, make_namespace, performed, start_program,
    until_installed, world,
};

/// The document that the control plane injects.
fn document(url: &str, token: &str) -> String {
    let config = json!({
        "api_url": url,
        "project_id": "a-project",
        "resource_handle": "web-1",
        "heartbeat_interval_ms": 20,
    });
    let document = json!({ "write_files": [
        { "path": "/etc/plexd/config.yaml", "permissions": "0644", "content": config.to_string() },
        { "path": "/etc/plexd/bootstrap-token", "permissions": "0600", "content": token },
    ] });
    format!("#cloud-config\n{document}\n")
}

fn helm_values(url: &str, token: &str) -> Value {
    json!({ "helmValues": { "bootstrapToken": token, "apiUrl": url, "plexdImage": "none" } })
}

async fn until_node(plane: &ControlPlane, token: &str, what: fn(&Node) -> bool) -> Node {
    until(TIMEOUT, &format!("the node of {token}"), async || {
        let node = plane.node(token);
        node.clone().filter(what).ok_or_else(|| format!("{node:?}"))
    })
    .await
}

async fn until_performed(world: &World, composite: &str, expected: &[&str]) {
    until(TIMEOUT, &format!("the performed of {composite}"), async || {
        let performed = world.performed();
        let done: Vec<&str> = performed
            .iter()
            .filter(|(name, _)| name == composite)
            .map(|(_, entry)| entry.as_str())
            .collect();
        if done == expected { Ok(()) } else { Err(format!("{done:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_node_registers_drains_and_stops_with_its_composite() {
    const NAME: &str = "a_node_registers_drains_and_stops_with_its_composite";
    let Some(world) = world(NAME).await else { return };
    let plane = ControlPlane::start().await;
    let mut object = composite("one", &json!({}));
    object["spec"]["userData"] = json!(document(&plane.url, "token-one"));
    world.apply(&object).await;
    let node = until_node(&plane, "token-one", |node| node.heartbeats > 1).await;
    assert_eq!(node.registered["resource_handle"], "web-1");
    assert_eq!(node.registered["capabilities"], json!(["drain"]));

    plane.ask_to_drain("token-one");
    until_node(&plane, "token-one", |node| node.drained).await;
    until_performed(&world, "one", &["booted", "registered", "leaving", "drained"]).await;
    world.api(&composites()).delete("one", &DeleteParams::default()).await.unwrap();
    world.until_gone(&composites(), "one").await;
    until_performed(&world, "one", &["booted", "registered", "leaving", "drained", "stopped"])
        .await;
}

#[tokio::test]
async fn a_refused_node_waits_for_another_token() {
    let Some(world) = world("a_refused_node_waits_for_another_token").await else { return };
    let plane = ControlPlane::start().await;
    for (name, token) in [("first", "same"), ("second", "same")] {
        let told = helm_values(&plane.url, token);
        world.apply(&composite(name, &told)).await;
        until(TIMEOUT, "an answer", async || {
            let performed = world.performed();
            let answered = |entry: &str| entry == "registered" || entry == "refused";
            performed.iter().any(|(other, entry)| other == name && answered(entry))
        })
        .await;
    }
    until_performed(&world, "second", &["booted", "refused"]).await;
    world.apply(&composite("second", &helm_values(&plane.url, "another"))).await;
    until_node(&plane, "another", |node| node.heartbeats > 0).await;
    until_performed(&world, "second", &["booted", "refused", "registered"]).await;
}

#[tokio::test]
async fn a_composite_without_a_node_boots_none_and_a_polite_one_leaves() {
    const NAME: &str = "a_composite_without_a_node_boots_none_and_a_polite_one_leaves";
    let Some(world) = world(NAME).await else { return };
    let plane = ControlPlane::start().await;
    let mut nodeless = helm_values(&plane.url, "unused");
    nodeless["standin"] = json!("no-node");
    let mut polite = helm_values(&plane.url, "polite");
    polite["standin"] = json!("leave");
    world.apply(&composite("nodeless", &nodeless)).await;
    world.apply(&composite("polite", &polite)).await;
    until_node(&plane, "polite", |node| node.heartbeats > 0).await;
    world.until("nodeless", "Ready", "True").await;

    for name in ["nodeless", "polite"] {
        world.api(&composites()).delete(name, &DeleteParams::default()).await.unwrap();
        world.until_gone(&composites(), name).await;
    }
    assert!(plane.node("polite").unwrap().left);
    assert!(plane.node("unused").is_none());
    until_performed(&world, "polite", &["booted", "registered", "left", "stopped"]).await;
    until_performed(&world, "nodeless", &[]).await;
}

#[tokio::test]
async fn a_real_agent_is_a_process_that_ends_with_its_composite() {
    const NAME: &str = "a_real_agent_is_a_process_that_ends_with_its_composite";
    let Some(kubernetes) = KubeEnvironment::for_test(NAME, Default::default()).await else {
        return;
    };
    let journal = kubernetes.folder().join("journal");
    start_program(&kubernetes, "process", &journal).await;
    let client = kubernetes.client(ADMIN).await.unwrap();
    until_installed(&client, &kubernetes).await;
    make_namespace(&client, "agents").await;
    let world = World { client, namespace: "agents".to_owned(), journal };
    let plane = ControlPlane::start().await;
    world.apply(&composite("one", &helm_values(&plane.url, "token-one"))).await;
    until_node(&plane, "token-one", |node| node.heartbeats > 0).await;
    let folder = kubernetes.folder().join("agents/agents/one");
    let agents = || processes_with_argument(folder.to_str().unwrap()).unwrap();
    assert_eq!(agents().len(), 1, "{:?}", agents());

    plane.ask_to_drain("token-one");
    until_performed(&world, "one", &["booted", "registered", "drained"]).await;
    world.api(&composites()).delete("one", &DeleteParams::default()).await.unwrap();
    world.until_gone(&composites(), "one").await;
    // The leave is read from the agent's own record when it ends, with the agent's time.
    until_performed(&world, "one", &["booted", "registered", "drained", "leaving", "stopped"])
        .await;
    // It wrote that before its very end.
    until(TIMEOUT, "the process to end", async || agents().is_empty()).await;
    assert!(!Path::new(&folder).exists());
}

#[tokio::test]
async fn within_a_test_it_ends_when_it_is_dropped() {
    const NAME: &str = "within_a_test_it_ends_when_it_is_dropped";
    let Some(kubernetes) = KubeEnvironment::for_test(NAME, Default::default()).await else {
        return;
    };
    let plane = ControlPlane::start().await;
    let journal = kubernetes.folder().join("journal");
    let options = Options {
        install: true,
        agent: AgentMode::InProcess,
        api_url: Some(plane.url.clone()),
        journal: Some(journal.clone()),
        ..Options::default()
    };
    let standin = kubernetes.client(OTHER_ADMIN).await.unwrap();
    let running = tokio::spawn(run(standin, options));
    let client = kubernetes.client(ADMIN).await.unwrap();
    until_installed(&client, &kubernetes).await;
    make_namespace(&client, "agents").await;
    let world = World { client, namespace: "agents".to_owned(), journal: journal.clone() };
    // Only the options name the control plane.
    let secret = json!({ "providerSecret": { "bootstrapToken": "token-one" } });
    world.apply(&composite("one", &secret)).await;
    until_node(&plane, "token-one", |node| node.heartbeats > 0).await;

    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    world.apply(&composite("two", &secret)).await;
    world.api(&composites()).delete("one", &DeleteParams::default()).await.unwrap();
    let left = world.api(&composites()).get("one").await.unwrap();
    assert!(left.metadata.deletion_timestamp.is_some(), "nobody took its finalizer off");
    let done: Vec<_> = performed(&journal, "agents").into_iter().map(|(_, entry)| entry).collect();
    assert_eq!(done, ["booted", "registered"]);
}
