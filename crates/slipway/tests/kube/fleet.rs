//! Fleet from end to end: a control plane, `slipway agent cluster` as processes, and real API
//! servers. After each change the content of a cluster is what it should be, by listing it.

mod crash;
mod life;
mod rolling;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use reqwest::Method;
use serde_json::{Value, json};
use slipway_testkit::kube::{ADMIN, KubeEnvironment};
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT, binary};

/// A control plane with a generator and a stack.
struct Fleet {
    plane: ControlPlane,
    generator_id: String,
    stack_id: String,
    /// Where its objects go; other tests use the same servers.
    namespace: String,
}

/// A cluster with an agent.
struct Site {
    agent_id: String,
    /// The test's own, with all rights.
    client: Client,
    namespace: String,
    server: String,
    /// Kubeconfig, key and log of the agent.
    folder: tempfile::TempDir,
}

/// An agent that runs; dropped, it is killed (SIGKILL).
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fleet {
    async fn start(test: &str) -> Self {
        let mut plane = ControlPlane::new(None);
        plane.start().await;
        plane.wait_until_ready().await;
        let mut fleet = Self {
            plane,
            generator_id: String::new(),
            stack_id: String::new(),
            namespace: format!("fleet-{test}"),
        };
        let made = fleet.post("/generators", json!({ "name": "ci" })).await;
        fleet.generator_id = text(&made["generator"]["id"]);
        let stack = json!({ "name": "web", "generator_id": fleet.generator_id });
        fleet.stack_id = text(&fleet.post("/stacks", stack).await["id"]);
        fleet
    }

    /// An active agent for a cluster, by this name and with the stack as its target.
    async fn join(&self, kubernetes: &KubeEnvironment, name: &str) -> Site {
        let client = kubernetes.client(ADMIN).await.unwrap();
        let namespace = json!({ "metadata": { "name": self.namespace } });
        let namespace: Namespace = serde_json::from_value(namespace).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let agent = json!({
            "name": "edge", "cluster_name": name, "generator_ids": [self.generator_id],
        });
        let made = self.post("/agents", agent).await;
        let site = Site {
            agent_id: text(&made["agent"]["id"]),
            client,
            namespace: self.namespace.clone(),
            server: self.plane.url(),
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(site.path("key"), text(&made["initial_pak"])).unwrap();
        site.reach_by(&kubernetes.kubeconfig(ADMIN));
        let agent = format!("/agents/{}", site.agent_id);
        self.call(Method::PUT, &agent, Some(json!({ "status": "ACTIVE" })), 200).await;
        self.target(&site).await;
        site
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

    async fn get(&self, path: &str) -> Value {
        self.plane.get(&format!("/api/v1{path}")).await
    }

    async fn target(&self, site: &Site) {
        let target = json!({ "agent_id": site.agent_id, "stack_id": self.stack_id });
        self.post(&format!("/agents/{}/targets", site.agent_id), target).await;
    }

    fn map(&self, name: &str, value: &str) -> String {
        let metadata = json!({ "name": name, "namespace": self.namespace });
        let data = json!({ "value": value });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
            .to_string()
    }

    /// Submits these documents; the id of the object.
    async fn submit_all(&self, documents: &[String]) -> String {
        let content = json!({ "yaml_content": documents.join("\n---\n") });
        let path = format!("/stacks/{}/deployment-objects", self.stack_id);
        text(&self.post(&path, content).await["id"])
    }

    /// Submits ConfigMaps with these names and values; the id of the object.
    async fn submit(&self, maps: &[(&str, &str)]) -> String {
        let documents: Vec<_> = maps.iter().map(|(name, value)| self.map(name, value)).collect();
        self.submit_all(&documents).await
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

    /// Waits until the one agent has said that it is done with a deletion.
    async fn delivered(&self, deletion: &str) {
        wait::until(TIMEOUT, "the delivery", async || {
            let found = self.get(&format!("/deletions/{deletion}")).await;
            let done = found["deliveries"][0]["removed_at"].is_string();
            if done { Ok(()) } else { Err(found["deliveries"].to_string()) }
        })
        .await;
    }

    /// What an agent reported about an object, as event and status.
    async fn reports(&self, site: &Site, object: &str) -> Vec<(String, String)> {
        let found = self.get(&format!("/agents/{}/events", site.agent_id)).await;
        let found = found.as_array().unwrap().iter();
        let about = found.filter(|report| report["deployment_object_id"] == *object);
        about.map(|report| (text(&report["event_type"]), text(&report["status"]))).collect()
    }
}

impl Site {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets the agent use this kubeconfig.
    fn reach_by(&self, kubeconfig: &str) {
        std::fs::write(self.path("kubeconfig"), kubeconfig).unwrap();
    }

    fn agent(&self, more: &[&str]) -> Command {
        let mut command = binary();
        command
            .args(["agent", "cluster", "--server", &self.server, "--poll", "1s"])
            .arg("--key-file")
            .arg(self.path("key"))
            .arg("--kubeconfig")
            .arg(self.path("kubeconfig"))
            .args(["--namespace", &format!("{}-agent", self.namespace)])
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

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    async fn values(&self) -> BTreeMap<String, String> {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let listed = maps.list(&ListParams::default()).await.unwrap().items.into_iter();
        let named = listed.filter_map(|map| Some((map.metadata.name?, map.data?.remove("value")?)));
        named.collect()
    }

    /// Waits until the cluster has exactly these ConfigMaps.
    async fn expect(&self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        wait::until(TIMEOUT, "the content of the cluster", async || {
            let found = self.values().await;
            if found == expected { Ok(()) } else { Err(format!("{found:?}\n{}", self.log())) }
        })
        .await;
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
