//! Fifty agents ask at the same moment, while stacks change: each answer is complete, and what
//! the control plane believes that they hold is exactly what they were answered.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::control_plane::{ControlPlane, client};

const AGENTS: usize = 50;
const STACKS: usize = 20;
const ROUNDS: usize = 4;

struct Agent {
    id: String,
    key: String,
    /// What it was answered last: stack and object.
    has: BTreeMap<String, String>,
    tag: Option<String>,
    client: reqwest::Client,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

async fn post(plane: &ControlPlane, path: &str, body: Value) -> Value {
    let (status, answer) = plane.call(Method::POST, &format!("/api/v1{path}"), Some(body)).await;
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
    answer
}

/// Stacks and agents that a label brings together.
async fn prepare(plane: &ControlPlane) -> (Vec<String>, Vec<Agent>) {
    let generator = post(plane, "/generators", json!({ "name": "ci" })).await;
    let generator = text(&generator["generator"]["id"]);
    let mut stacks = Vec::new();
    for number in 0..STACKS {
        let stack = json!({ "name": format!("s{number}"), "generator_id": generator });
        let stack = text(&post(plane, "/stacks", stack).await["id"]);
        post(plane, &format!("/stacks/{stack}/labels"), json!("all")).await;
        stacks.push(stack);
    }
    let mut agents = Vec::new();
    for number in 0..AGENTS {
        let agent = json!({
            "name": "edge", "cluster_name": format!("c{number}"), "generator_ids": [generator],
        });
        let made = post(plane, "/agents", agent).await;
        let id = text(&made["agent"]["id"]);
        let label = json!({ "agent_id": id, "label": "all" });
        post(plane, &format!("/agents/{id}/labels"), label).await;
        let path = format!("/api/v1/agents/{id}");
        let active = Some(json!({ "status": "ACTIVE" }));
        assert_eq!(plane.call(Method::PUT, &path, active).await.0, 200);
        let key = text(&made["initial_pak"]);
        agents.push(Agent { id, key, has: BTreeMap::new(), tag: None, client: client() });
    }
    (stacks, agents)
}

async fn submit(plane: &ControlPlane, stack: &str, round: usize) -> String {
    let content = json!({ "yaml_content": format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{round: '{round}'}}\n"
    ) });
    let path = format!("/stacks/{stack}/deployment-objects");
    text(&post(plane, &path, content).await["id"])
}

impl Agent {
    /// Asks until it is answered. The only refusal is an honest 503.
    async fn poll(&mut self, url: &str) -> usize {
        let path = format!("{url}/api/v1/agents/{}/target-state?mode=full", self.id);
        for refused in 0.. {
            let mut request = self.client.get(&path).bearer_auth(&self.key);
            if let Some(tag) = &self.tag {
                request = request.header("if-none-match", tag);
            }
            let answer = request.send().await.unwrap();
            match answer.status() {
                StatusCode::OK => {
                    self.tag = Some(answer.headers()["etag"].to_str().unwrap().to_owned());
                    let objects: Vec<Value> = answer.json().await.unwrap();
                    let of = |object: &Value| (text(&object["stack_id"]), text(&object["id"]));
                    self.has = objects.iter().map(of).collect();
                    assert_eq!(self.has.len(), objects.len(), "a stack twice: {objects:?}");
                    return refused;
                }
                StatusCode::NOT_MODIFIED => return refused,
                StatusCode::SERVICE_UNAVAILABLE => {
                    assert!(answer.headers().contains_key("retry-after"), "{answer:?}");
                    tokio::task::yield_now().await;
                }
                status => panic!("{status}: {}", answer.text().await.unwrap()),
            }
        }
        unreachable!("it asks until it is answered")
    }

    async fn report(&self, url: &str, object: &str) {
        let path = format!("{url}/api/v1/agents/{}/events", self.id);
        let body = json!({
            "agent_id": self.id, "deployment_object_id": object, "event_type": "DEPLOY",
            "status": "SUCCESS",
        });
        let sent = self.client.post(path).bearer_auth(&self.key).json(&body).send().await.unwrap();
        assert_eq!(sent.status(), StatusCode::CREATED, "{}", sent.text().await.unwrap());
    }
}

/// All at once; how often one was told to come later.
async fn poll_all(plane: &ControlPlane, agents: Vec<Agent>) -> (Vec<Agent>, usize) {
    let mut tasks = JoinSet::new();
    for mut agent in agents {
        let url = plane.url();
        tasks.spawn(async move {
            let refused = agent.poll(&url).await;
            (agent, refused)
        });
    }
    let done = tasks.join_all().await;
    let refused = done.iter().map(|(_, refused)| refused).sum();
    (done.into_iter().map(|(agent, _)| agent).collect(), refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_agents_that_ask_at_once_get_complete_answers() {
    for mut plane in ControlPlane::each("fifty_agents_that_ask_at_once").await {
        plane.set(&["--rate-limit", "10000", "--rate-burst", "10000"]);
        plane.start().await;
        plane.wait_until_ready().await;
        let (stacks, mut agents) = prepare(&plane).await;
        let mut newest = BTreeMap::new();
        for stack in &stacks {
            newest.insert(stack.clone(), submit(&plane, stack, 0).await);
        }
        for round in 1..=ROUNDS {
            // Half of the stacks change while everybody asks.
            let changing: Vec<_> = stacks.iter().skip(round % 2).step_by(2).cloned().collect();
            let known: BTreeSet<_> = newest.values().cloned().collect();
            let ((asked, refused), changed) = tokio::join!(poll_all(&plane, agents), async {
                let mut changed = Vec::new();
                for stack in changing {
                    let object = submit(&plane, &stack, round).await;
                    changed.push((stack, object));
                }
                changed
            });
            newest.extend(changed);
            agents = asked;
            let all: BTreeSet<_> = known.into_iter().chain(newest.values().cloned()).collect();
            for agent in &agents {
                let has: Vec<_> = agent.has.keys().collect();
                assert_eq!(has, newest.keys().collect::<Vec<_>>(), "round {round}: a part");
                assert!(agent.has.values().all(|object| all.contains(object)), "{:?}", agent.has);
            }
            // Without changes everybody has the newest, and a second question writes nothing.
            for _ in 0..2 {
                agents = poll_all(&plane, agents).await.0;
                assert!(agents.iter().all(|agent| agent.has == newest), "round {round}");
            }
            assert!(refused < AGENTS * 10, "{refused} refusals in round {round}");
        }
        assert_holdings(&plane, &stacks, &agents).await;
        plane.stop().await;
    }
}

/// One agent after the other reports one stack: each counts as it said, and nobody else does.
async fn assert_holdings(plane: &ControlPlane, stacks: &[String], agents: &[Agent]) {
    let counts = async |stack: &str| {
        let found = plane.get(&format!("/api/v1/explain/stack/{stack}")).await;
        found["facts"]["agents"].clone()
    };
    for stack in stacks {
        assert_eq!(counts(stack).await, json!({ "deploying": AGENTS }), "{stack}");
    }
    let (reported, rest) = stacks.split_first().unwrap();
    let url = plane.url();
    let reports = agents.iter().map(|agent| agent.report(&url, &agent.has[reported]));
    futures::future::join_all(reports).await;
    assert_eq!(counts(reported).await, json!({ "current": AGENTS }));
    for stack in rest {
        assert_eq!(counts(stack).await, json!({ "deploying": AGENTS }), "{stack}");
    }
}
