//! Fleet from end to end: a control plane, `slipway agent cluster` as a process, and a real
//! API server. After each change the content of the cluster is what it should be, by listing it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::kube::{ADMIN, shared};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT, binary};

const NAMESPACE: &str = "fleet-apps";

struct Fleet {
    plane: ControlPlane,
    client: Client,
    agent_id: String,
    stack_id: String,
    /// Kubeconfig and key of the agent.
    folder: tempfile::TempDir,
}

/// An agent that runs; dropped, it is killed.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fleet {
    async fn start(test: &str) -> Option<Self> {
        let kubernetes = shared(test).await?;
        let client = kubernetes.client(ADMIN).await.unwrap();
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        let namespace: Namespace = serde_json::from_value(namespace).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let mut plane = ControlPlane::new(None);
        plane.start().await;
        plane.wait_until_ready().await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), kubernetes.kubeconfig(ADMIN)).unwrap();

        let mut fleet =
            Self { plane, client, agent_id: String::new(), stack_id: String::new(), folder };
        let made = fleet.post("/generators", json!({ "name": "ci" })).await;
        let generator = text(&made["generator"]["id"]);
        let agent = json!({
            "name": "edge", "cluster_name": "east", "generator_ids": [generator],
        });
        let made = fleet.post("/agents", agent).await;
        fleet.agent_id = text(&made["agent"]["id"]);
        std::fs::write(fleet.path("key"), text(&made["initial_pak"])).unwrap();
        let agent = format!("/agents/{}", fleet.agent_id);
        fleet.call(Method::PUT, &agent, Some(json!({ "status": "ACTIVE" })), 200).await;
        let stack = json!({ "name": "web", "generator_id": generator });
        fleet.stack_id = text(&fleet.post("/stacks", stack).await["id"]);
        fleet.target().await;
        Some(fleet)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>, status: u16) -> Value {
        let (found, answer) = self.plane.call(method, &format!("/api/v1{path}"), body).await;
        assert_eq!(found, status, "{path}: {answer}");
        answer
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.plane.call(Method::POST, &format!("/api/v1{path}"), Some(body)).await;
        assert!((200..300).contains(&answer.0), "{path}: {answer:?}");
        answer.1
    }

    async fn target(&self) {
        let target = json!({ "agent_id": self.agent_id, "stack_id": self.stack_id });
        self.post(&format!("/agents/{}/targets", self.agent_id), target).await;
    }

    /// Submits ConfigMaps with these names and values.
    async fn submit(&self, maps: &[(&str, &str)]) {
        let documents: Vec<_> = maps
            .iter()
            .map(|(name, value)| {
                let metadata = json!({ "name": name, "namespace": NAMESPACE });
                let data = json!({ "value": value });
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
                    .to_string()
            })
            .collect();
        let content = json!({ "yaml_content": documents.join("\n---\n") });
        self.post(&format!("/stacks/{}/deployment-objects", self.stack_id), content).await;
    }

    /// The deletion that it became.
    async fn delete_stack(&self, query: &str) -> String {
        let path = format!("/api/v1/stacks/{}?reason=test{query}", self.stack_id);
        let answer = self.plane.send(Method::DELETE, &path, None).await;
        assert_eq!(answer.status().as_u16(), 204);
        let location = answer.headers()["location"].to_str().unwrap().to_owned();
        location.rsplit('/').next().unwrap().to_owned()
    }

    async fn restore(&self, deletion: &str) {
        self.post(&format!("/deletions/{deletion}/restore"), json!({})).await;
    }

    fn agent(&self, more: &[&str]) -> std::process::Command {
        let mut command = binary();
        command
            .args(["agent", "cluster", "--server", &self.plane.url(), "--poll", "1s"])
            .arg("--key-file")
            .arg(self.path("key"))
            .arg("--kubeconfig")
            .arg(self.path("kubeconfig"))
            .args(["--namespace", "fleet-agent"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    async fn run_once(&self) {
        let mut command = self.agent(&["--once"]);
        let ended = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    fn run(&self) -> Running {
        let log = std::fs::File::create(self.path("log")).unwrap();
        Running(self.agent(&[]).stderr(log).spawn().unwrap())
    }

    async fn values(&self) -> BTreeMap<String, String> {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), NAMESPACE);
        let listed = maps.list(&ListParams::default()).await.unwrap().items.into_iter();
        let named = listed.filter_map(|map| Some((map.metadata.name?, map.data?.remove("value")?)));
        named.collect()
    }

    async fn expect(&self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        wait::until(TIMEOUT, "the content of the cluster", async || {
            let found = self.values().await;
            let log = || std::fs::read_to_string(self.path("log")).unwrap_or_default();
            if found == expected { Ok(()) } else { Err(format!("{found:?}\n{}", log())) }
        })
        .await;
    }

    /// Waits until the agent has said that it is done with a deletion.
    async fn delivered(&self, deletion: &str) {
        wait::until(TIMEOUT, "the delivery", async || {
            let found = self.plane.get(&format!("/api/v1/deletions/{deletion}")).await;
            let done = found["deliveries"][0]["removed_at"].is_string();
            if done { Ok(()) } else { Err(found["deliveries"].to_string()) }
        })
        .await;
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_has_what_the_control_plane_says_after_each_change() {
    let Some(fleet) = Fleet::start("fleet").await else { return };
    let agent = fleet.run();
    fleet.submit(&[("a", "1"), ("b", "1")]).await;
    fleet.expect(&[("a", "1"), ("b", "1")]).await;
    fleet.submit(&[("b", "2"), ("c", "2")]).await;
    fleet.expect(&[("b", "2"), ("c", "2")]).await;
    let deletion = fleet.delete_stack("").await;
    fleet.delivered(&deletion).await;
    fleet.expect(&[]).await;
    fleet.restore(&deletion).await;
    fleet.expect(&[("b", "2"), ("c", "2")]).await;

    // Deleted and brought back while nothing runs, then deleted again.
    drop(agent);
    let deletion = fleet.delete_stack("").await;
    fleet.expect(&[("b", "2"), ("c", "2")]).await;
    fleet.run_once().await;
    fleet.delivered(&deletion).await;
    fleet.expect(&[]).await;
    fleet.restore(&deletion).await;
    fleet.run_once().await;
    fleet.expect(&[("b", "2"), ("c", "2")]).await;

    // Taken from this agent alone, and given again.
    let target = format!("/agents/{}/targets/{}", fleet.agent_id, fleet.stack_id);
    fleet.call(Method::DELETE, &target, None, 204).await;
    fleet.run_once().await;
    fleet.expect(&[]).await;
    fleet.target().await;
    fleet.run_once().await;
    fleet.expect(&[("b", "2"), ("c", "2")]).await;

    // Kept: the objects stay and are nobody's; restored, they are taken again.
    let deletion = fleet.delete_stack("&keep=true").await;
    fleet.run_once().await;
    fleet.delivered(&deletion).await;
    fleet.expect(&[("b", "2"), ("c", "2")]).await;
    fleet.restore(&deletion).await;
    fleet.submit(&[("b", "3")]).await;
    fleet.run_once().await;
    // What was let go and is no part of the stack any more is not ours to delete.
    fleet.expect(&[("b", "3"), ("c", "2")]).await;
    let deletion = fleet.delete_stack("").await;
    fleet.run_once().await;
    fleet.expect(&[("c", "2")]).await;

    // Everybody is done with it, so it can be erased.
    let purge = format!("/deletions/{deletion}/purge");
    fleet.post(&purge, json!({ "reason": "test" })).await;
    fleet.run_once().await;
    fleet.expect(&[("c", "2")]).await;
}
