//! A client of Fleet's protocol that checks what holds for every answer: `wire.txt` has
//! every operation with the statuses and query parameters that clients of it know.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use slipway_server::TABLE;

use crate::world::{Answer, KEY, World};

/// Statuses that any row may answer beside those that it is published with.
const ALWAYS: [u16; 10] = [304, 400, 401, 403, 404, 409, 412, 413, 422, 501];

/// The rows of the protocol: statuses and query parameters by method and path.
pub(crate) fn published() -> BTreeMap<(String, String), (Vec<u16>, Vec<String>)> {
    let row = |line: &str| {
        let mut parts = line.split(' ').map(str::to_owned);
        let name = (parts.next().unwrap(), parts.next().unwrap());
        let statuses = parts.next().unwrap();
        let statuses = statuses.split(',').map(|status| status.parse().unwrap()).collect();
        let query = parts.next().unwrap_or_default();
        let query = query.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        (name, (statuses, query))
    };
    include_str!("wire.txt").lines().map(row).collect()
}

/// A client that keeps account of the rows which it used.
pub(crate) struct Fleet {
    pub(crate) world: World,
    pub(crate) used: RefCell<BTreeSet<(String, String)>>,
}

impl Fleet {
    pub(crate) fn new(world: World) -> Self {
        Self { world, used: RefCell::default() }
    }

    /// Sends a request to a row, with these in place of its parameters.
    pub(crate) async fn ask(
        &self,
        key: &str,
        row: &str,
        parameters: &[&str],
        body: Option<Value>,
    ) -> Answer {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.send(key, row, parameters, &[("content-type", "application/json")], body).await
    }

    pub(crate) async fn send(
        &self,
        key: &str,
        row: &str,
        parameters: &[&str],
        headers: &[(&str, &str)],
        body: String,
    ) -> Answer {
        let (row, query) = row.split_once('?').unwrap_or((row, ""));
        let (method, pattern) = row.split_once(' ').unwrap();
        let mut parameters = parameters.iter();
        let path = pattern.split('/').map(|part| match part.starts_with('{') {
            true => *parameters.next().unwrap(),
            false => part,
        });
        let path = path.collect::<Vec<_>>().join("/");
        assert!(parameters.next().is_none(), "{row}");
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}?{query}").trim_end_matches('?'))
            .header("authorization", key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.world.send(request.body(Body::from(body)).unwrap()).await;
        let status = answer.status.as_u16();
        if let Some((published, _)) = published().get(&(method.to_owned(), pattern.to_owned())) {
            let known = published.contains(&status) || ALWAYS.contains(&status);
            assert!(known, "{row}: {answer:?}");
        }
        if answer.status.is_success() || status == 501 {
            self.used.borrow_mut().insert((method.to_owned(), pattern.to_owned()));
        }
        let is_repeated = headers.iter().any(|(name, _)| *name == "idempotency-key");
        if answer.status.is_success() && !is_repeated {
            self.check_audit(method, pattern, &answer).await;
        }
        if answer.status.is_client_error() || answer.status.is_server_error() {
            let problem = answer.json();
            assert!(problem["code"].is_string() && problem["message"].is_string(), "{answer:?}");
        }
        answer
    }

    /// A row with an audit verb leaves an entry about the same kind, under the id of its request.
    async fn check_audit(&self, method: &str, pattern: &str, answer: &Answer) {
        let row = TABLE.iter().find(|row| row.method == method && row.path == pattern).unwrap();
        let Some(verb) = row.terms().audit else { return };
        let entries = self.world.get("/api/v1/audit?limit=20").await.json();
        let request = answer.header("x-request-id");
        let kind = verb.split('.').next().unwrap();
        let is_its = |entry: &Value| {
            entry["correlation_id"] == request && entry["verb"].as_str().unwrap().starts_with(kind)
        };
        assert!(entries.as_array().unwrap().iter().any(is_its), "{method} {pattern}: {entries}");
    }

    /// The document of an answer with this status.
    pub(crate) async fn expect(
        &self,
        status: u16,
        key: &str,
        row: &str,
        parameters: &[&str],
        body: Option<Value>,
    ) -> Value {
        let answer = self.ask(key, row, parameters, body).await;
        assert_eq!(answer.status.as_u16(), status, "{row}: {answer:?}");
        if answer.text.is_empty() { Value::Null } else { answer.json() }
    }

    pub(crate) async fn refuse(
        &self,
        (status, code): (u16, &str),
        key: &str,
        row: &str,
        parameters: &[&str],
        body: Option<Value>,
    ) -> Option<String> {
        self.ask(key, row, parameters, body).await.refused(status, code)
    }

    /// A generator and its key.
    pub(crate) async fn generator(&self, name: &str) -> (String, String) {
        let made =
            self.expect(201, KEY, "POST /generators", &[], Some(json!({ "name": name }))).await;
        (id(&made["generator"]), made["pak"].as_str().unwrap().to_owned())
    }

    /// An active agent that is registered with these generators, and its key.
    pub(crate) async fn agent(&self, name: &str, generators: &[&str]) -> (String, String) {
        let body = json!({ "name": name, "cluster_name": "berlin", "generator_ids": generators });
        let made = self.expect(201, KEY, "POST /agents", &[], Some(body)).await;
        let (id, key) = (id(&made["agent"]), made["initial_pak"].as_str().unwrap().to_owned());
        assert_eq!(made["agent"]["status"], "INACTIVE");
        let active = Some(json!({ "status": "ACTIVE" }));
        self.expect(200, KEY, "PUT /agents/{id}", &[&id], active).await;
        (id, key)
    }

    pub(crate) async fn stack(&self, key: &str, generator: &str, name: &str) -> String {
        let body = json!({ "name": name, "generator_id": generator });
        id(&self.expect(201, key, "POST /stacks", &[], Some(body)).await)
    }

    /// Submits an object and answers it.
    pub(crate) async fn submit(&self, key: &str, stack: &str, name: &str) -> Value {
        let body = Some(json!({ "yaml_content": content(name) }));
        self.expect(201, key, "POST /stacks/{id}/deployment-objects", &[stack], body).await
    }

    pub(crate) async fn target_state(&self, key: &str, agent: &str) -> Vec<Value> {
        let offered = self.expect(200, key, "GET /agents/{id}/target-state", &[agent], None).await;
        offered.as_array().unwrap().clone()
    }

    pub(crate) async fn report(&self, key: &str, agent: &str, object: &str, status: &str) -> Value {
        let body = json!({
            "agent_id": agent, "deployment_object_id": object, "event_type": "DEPLOY",
            "status": status, "message": null,
        });
        self.expect(201, key, "POST /agents/{id}/events", &[agent], Some(body)).await
    }
}

pub(crate) fn id(document: &Value) -> String {
    document["id"].as_str().unwrap_or_else(|| panic!("{document}")).to_owned()
}

pub(crate) fn content(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}
