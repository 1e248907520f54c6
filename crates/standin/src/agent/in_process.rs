//! An agent as a task: makes the calls of a real agent through one shared
//! client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use data_encoding::{BASE64, HEXLOWER};
use serde::Serialize;
use slipway_wire::nodes::plexd::{
    CAPABILITY_DRAIN, Capabilities, DrainAcknowledgement, HeartbeatReply, HeartbeatRequest,
    RegisterReply, RegisterRequest,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::injected::Injected;
use crate::context::Context;
use crate::journal::{JournalEntry, Name};

const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

pub(crate) struct Agent {
    told: watch::Sender<Drained>,
    /// Read with each heartbeat. Not part of the watched value: a change of
    /// that restarts the node's life.
    busy: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Drained {
    injected: Injected,
    /// Set once, when the machine has to end: whether it says good-bye.
    end: Option<bool>,
}

impl Agent {
    pub(super) fn boot(context: &Context, name: &Name, injected: Injected) -> Self {
        let (told, receiver) = watch::channel(Drained { injected, end: None });
        let busy = Arc::<AtomicBool>::default();
        let node = Node {
            busy: Arc::clone(&busy),
            context: context.clone(),
            name: name.clone(),
            told: receiver,
            public_key: random(32).map(|bytes| BASE64.encode(&bytes)),
        };
        Self { told, busy, task: tokio::spawn(node.live()) }
    }

    pub(super) fn update(&self, injected: Injected) {
        self.told.send_if_modified(|told| {
            let differs = told.injected != injected;
            told.injected = injected;
            differs
        });
    }

    pub(super) fn keep_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    pub(super) async fn end(mut self, leaves: bool) {
        self.told.send_modify(|told| told.end = Some(leaves));
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "an agent ended badly");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Node {
    busy: Arc<AtomicBool>,
    context: Context,
    name: Name,
    told: watch::Receiver<Drained>,
    /// `None` without a source of randomness; then it cannot register.
    public_key: Option<String>,
}

/// Why a call failed.
enum CallError {
    /// Repeating the call would give the same answer.
    Refused(u16, String),
    Later(String),
}

impl Node {
    async fn live(mut self) {
        let mut told = self.told.clone();
        let ended = async move {
            loop {
                let end = told.borrow_and_update().end;
                if let Some(leaves) = end {
                    return leaves;
                }
                if told.changed().await.is_err() {
                    return false;
                }
            }
        };
        let mut identity = None;
        let leaves = tokio::select! {
            leaves = ended => leaves,
            () = self.work(&mut identity) => false,
        };
        if let (true, Some(Identity { node_id, key, drained: false })) = (leaves, &identity) {
            let url = self.url(&format!("nodes/{node_id}/deregister"));
            match self.post(&url, key, &serde_json::json!({})).await {
                Ok(_) => self.write(JournalEntry::Left, Some(node_id), None),
                Err(error) => self.write(JournalEntry::Refused, Some(node_id), Some(&error.text())),
            }
        }
        let node_id = identity.as_ref().map(|identity| &*identity.node_id);
        self.write(JournalEntry::Stopped, node_id, None);
    }

    /// Registers, sends heartbeats, drains; never ends by itself.
    async fn work(&mut self, identity: &mut Option<Identity>) {
        loop {
            let enrolled = self.register().await;
            self.write(JournalEntry::Registered, Some(&enrolled.node_id), None);
            let current = identity.insert(enrolled);
            self.heartbeat(current).await;
            // Only a new token helps.
            self.injected_anew().await;
        }
    }

    async fn register(&mut self) -> Identity {
        let mut retry = SHORTEST_RETRY;
        loop {
            let injected = self.told.borrow_and_update().injected.clone();
            let request = RegisterRequest {
                token: Some(injected.token.clone()),
                bootstrap_token: injected.project_id.is_some().then(|| injected.token.clone()),
                public_key: self.public_key.clone().unwrap_or_default(),
                hostname: injected.hostname,
                project_id: injected.project_id,
                resource_handle: injected.resource_handle,
                nonce: random(16).map(|bytes| HEXLOWER.encode(&bytes)),
                requested_resource_id: None,
                capabilities: Some(Capabilities::Names(vec![CAPABILITY_DRAIN.to_owned()])),
                metadata: None,
            };
            let answered = self.post(&self.url("register"), &injected.token, &request).await;
            let reply = match answered {
                Ok(response) => response
                    .json::<RegisterReply>()
                    .await
                    .map_err(|error| CallError::Later(error.to_string())),
                Err(error) => Err(error),
            };
            match reply {
                Ok(reply) => {
                    return Identity {
                        node_id: reply.node_id,
                        key: reply.node_secret_key,
                        drained: false,
                    };
                }
                Err(error @ CallError::Refused(..)) => {
                    self.write(JournalEntry::Refused, None, Some(&error.text()));
                    self.injected_anew().await;
                    retry = SHORTEST_RETRY;
                }
                Err(CallError::Later(reason)) => {
                    tracing::debug!(composite = self.name.composite, reason, "registers again");
                    tokio::time::sleep(retry).await;
                    retry = (retry * 2).min(LONGEST_RETRY);
                }
            }
        }
    }

    /// Runs until the key is refused, which means that the node was deregistered.
    async fn heartbeat(&mut self, identity: &mut Identity) {
        let injected = self.told.borrow().injected.clone();
        let work_ends = Instant::now() + injected.busy;
        let url = self.url(&format!("nodes/{}/heartbeat", identity.node_id));
        let mut asked: Option<String> = None;
        loop {
            let status = match (&asked, identity.drained) {
                (_, true) => "drained",
                (Some(_), false) => "draining",
                (None, false) => "active",
            };
            let request = HeartbeatRequest {
                status: Some(status.to_owned()),
                binary_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                binary_checksum: None,
            };
            match self.post(&url, &identity.key, &request).await {
                Ok(response) => {
                    if let Ok(HeartbeatReply { drain: Some(drain), .. }) = response.json().await
                        && asked.as_ref() != Some(&drain.drain_id)
                    {
                        asked = Some(drain.drain_id);
                        identity.drained = false;
                    }
                }
                Err(error @ CallError::Refused(401 | 403 | 404, _)) => {
                    if !identity.drained {
                        let node_id = Some(&*identity.node_id);
                        self.write(JournalEntry::Refused, node_id, Some(&error.text()));
                    }
                    return;
                }
                Err(_) => {}
            }
            let working = Instant::now() < work_ends || self.busy.load(Ordering::Relaxed);
            let due = !working && !identity.drained;
            if let (Some(drain_id), true) = (&asked, due) {
                let url = self.url(&format!("nodes/{}/drain", identity.node_id));
                let body = DrainAcknowledgement { drain_id: drain_id.clone() };
                self.write(JournalEntry::Leaving, Some(&identity.node_id), None);
                if self.post(&url, &identity.key, &body).await.is_ok() {
                    identity.drained = true;
                    self.write(JournalEntry::Drained, Some(&identity.node_id), None);
                }
            }
            tokio::time::sleep(injected.heartbeat).await;
        }
    }

    async fn injected_anew(&mut self) {
        // The sender lives as long as the agent; afterwards there is nothing to
        // wait for, and the task is aborted from outside.
        if self.told.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn url(&self, path: &str) -> String {
        let told = self.told.borrow();
        format!("{}/v1/{path}", told.injected.api_url.trim_end_matches('/'))
    }

    async fn post<T: Serialize + Sync>(
        &self,
        url: &str,
        bearer: &str,
        body: &T,
    ) -> Result<reqwest::Response, CallError> {
        let sent = self.context.http.post(url).bearer_auth(bearer).json(body).send().await;
        let response = sent.map_err(|error| CallError::Later(error.without_url().to_string()))?;
        let status = response.status().as_u16();
        match status {
            200..=299 => Ok(response),
            408 | 429 | 500.. => Err(CallError::Later(format!("answered {status}"))),
            _ => Err(CallError::Refused(status, response.text().await.unwrap_or_default())),
        }
    }

    fn write(&self, entry: JournalEntry, node_id: Option<&str>, detail: Option<&str>) {
        self.context.journal.write(&self.name, entry, node_id, detail);
    }
}

struct Identity {
    node_id: String,
    key: String,
    drained: bool,
}

impl CallError {
    fn text(&self) -> String {
        match self {
            Self::Refused(status, body) => format!("{status} {body}"),
            Self::Later(reason) => reason.clone(),
        }
    }
}

fn random(length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes)
}
