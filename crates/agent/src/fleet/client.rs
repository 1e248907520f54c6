//! The protocol of Fleet over HTTP, as an agent speaks it: one method per call, one
//! attempt each.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ETAG, IF_NONE_MATCH};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use slipway_wire::fleet::{
    Agent, AuthResponse, DeploymentObject, HealthStatusUpdate, HeartbeatReport, NewAgentEvent,
    PruneConfirmation, PruneRefusal,
};

use super::error::Error;
use crate::http::{DEADLINE, Failure, Http, decode};
use crate::secret::StoredSecret;

/// What this agent can do beyond the published protocol.
const CAPABILITIES: [&str; 1] = ["keep"];

/// The largest answer that is no target state.
const LARGEST_REPLY: usize = 4 << 20;

/// The largest target state: sixty stacks of the largest content, or many more of a
/// usual size. A longer one is an error, never a part of it.
const LARGEST_STATE: usize = 256 << 20;

/// The longest that the server holds an answer back.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Where the key of the agent comes from.
#[derive(Clone)]
pub enum Key {
    /// Read again when the server refuses the key, since it may have been rotated.
    File(PathBuf),
    Text(String),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Text(_) => f.write_str("Text([secret])"),
        }
    }
}

impl Key {
    fn read(&self) -> Result<StoredSecret, Error> {
        let text =
            match self {
                Self::Text(text) => text.clone(),
                Self::File(path) => std::fs::read_to_string(path).map_err(|source| {
                    Error::File { what: "the file with the key", path: path.clone(), source }
                })?,
            };
        match (text.trim(), self) {
            ("", Self::File(path)) => Err(Error::EmptyKey { path: path.clone() }),
            ("", Self::Text(_)) => Err(Error::EmptyKey { path: "SLIPWAY_KEY".into() }),
            (text, _) => Ok(StoredSecret::new(text)),
        }
    }
}

/// The answer to a poll.
#[derive(Debug)]
pub(crate) enum Answer {
    Unchanged,
    Objects { tag: Option<String>, objects: Vec<DeploymentObject> },
}

#[derive(Debug)]
pub(crate) struct Client {
    http: Http,
    source: Key,
    key: Mutex<StoredSecret>,
}

impl Client {
    pub(crate) fn new(server: &str, key: Key, ca_file: Option<&PathBuf>) -> Result<Self, Error> {
        let wrong = |problem: String| Error::Server { server: server.to_owned(), problem };
        let url = Url::parse(server).map_err(|error| wrong(format!("is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("has the scheme {}, not http or https", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("carries a user or a password; an agent has a key".to_owned()));
        }
        let read = |path: &PathBuf| {
            let what = "the file of authorities";
            std::fs::read(path).map_err(|source| Error::File { what, path: path.clone(), source })
        };
        let authorities = ca_file.map(read).transpose()?;
        let http = Http::new(&url, authorities.as_deref())
            .map_err(|reason| Error::Client { server: server.to_owned(), reason })?;
        let secret = Mutex::new(key.read()?);
        Ok(Self { http, source: key, key: secret })
    }

    fn key(&self) -> StoredSecret {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file of the key again. One that cannot be read leaves the key as it is.
    fn refresh_key(&self) {
        if let Ok(key) = self.source.read() {
            *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key;
        }
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.http.request(method, &[&["api", "v1"], path].concat())
    }

    async fn send(
        &self,
        request: RequestBuilder,
        call: &str,
        is_routine: bool,
    ) -> Result<Response, Failure> {
        let sent = self.http.send(request, &self.key(), call, is_routine).await;
        if let Err(failure) = &sent
            && failure.refusal() == Some(StatusCode::UNAUTHORIZED)
        {
            self.refresh_key();
        }
        sent
    }

    async fn read<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        call: &str,
    ) -> Result<T, Failure> {
        decode(self.send(request, call, true).await?, LARGEST_REPLY).await
    }

    /// Whom the key speaks for.
    pub(crate) async fn authenticate(&self) -> Result<AuthResponse, Failure> {
        self.read(self.request(Method::POST, &["auth", "pak"]), "auth").await
    }

    pub(crate) async fn agent(&self, id: &str) -> Result<Agent, Failure> {
        self.read(self.request(Method::GET, &["agents", id]), "agent").await
    }

    pub(crate) async fn heartbeat(
        &self,
        id: &str,
        cluster: Option<ClusterContact>,
    ) -> Result<(), Failure> {
        let report = HeartbeatReport {
            capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
            k8s_api_latency_ms: cluster.and_then(|cluster| cluster.latency_ms),
            k8s_reachable: cluster.map(|cluster| cluster.is_reachable),
        };
        let request = self.request(Method::POST, &["agents", id, "heartbeat"]).json(&report);
        self.send(request, "heartbeat", true).await.map(|_| ())
    }

    /// What the agent should have. The server holds an answer that equals `tag` back
    /// for `wait`, if it can.
    pub(crate) async fn target_state(
        &self,
        id: &str,
        tag: Option<&str>,
        wait: Duration,
    ) -> Result<Answer, Failure> {
        let wait = wait.min(LONGEST_WAIT);
        let mut request = self.request(Method::GET, &["agents", id, "target-state"]);
        request = request.query(&[("mode", "full")]).timeout(DEADLINE + wait);
        if let Some(tag) = tag {
            request = request.header(IF_NONE_MATCH, tag);
            if !wait.is_zero() {
                // Whole seconds; less than one is one.
                let seconds = wait.as_secs().max(1).to_string();
                request = request.query(&[("wait", seconds)]);
            }
        }
        let response = self.send(request, "target-state", true).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            return match tag {
                Some(_) => Ok(Answer::Unchanged),
                None => Err(senseless("304 without a condition")),
            };
        }
        let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let objects: Vec<DeploymentObject> = decode(response, LARGEST_STATE).await?;
        let is_id = |id: &str| {
            id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        };
        // Ids become names of files and objects here.
        if !objects.iter().all(|object| is_id(&object.stack_id) && is_id(&object.id)) {
            return Err(senseless("an object whose id is no UUID"));
        }
        Ok(Answer::Objects { tag, objects })
    }

    pub(crate) async fn report(&self, id: &str, event: &NewAgentEvent) -> Result<(), Failure> {
        let request = self.request(Method::POST, &["agents", id, "events"]).json(event);
        self.send(request, "event", false).await.map(|_| ())
    }

    pub(crate) async fn health(
        &self,
        id: &str,
        update: &HealthStatusUpdate,
    ) -> Result<(), Failure> {
        let request = self.request(Method::PATCH, &["agents", id, "health-status"]).json(update);
        self.send(request, "health-status", true).await.map(|_| ())
    }

    pub(crate) async fn refuse_prune(
        &self,
        id: &str,
        refusal: &PruneRefusal,
    ) -> Result<(), Failure> {
        let request = self.request(Method::PUT, &["agents", id, "prune-refusal"]).json(refusal);
        self.send(request, "prune-refusal", false).await.map(|_| ())
    }

    pub(crate) async fn confirmed_prunes(
        &self,
        id: &str,
    ) -> Result<Vec<PruneConfirmation>, Failure> {
        self.read(self.request(Method::GET, &["agents", id, "prune-confirmations"]), "prunes").await
    }
}

/// What an agent knows about the API server of its cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClusterContact {
    pub(crate) is_reachable: bool,
    pub(crate) latency_ms: Option<i32>,
}

fn senseless(what: &str) -> Failure {
    Failure::NoAnswer { reason: format!("it answered {what}") }
}
