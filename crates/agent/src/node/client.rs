//! The node protocol over HTTP: one method per call, one attempt each. The
//! callers decide whether and when to try again.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Certificate, Response, StatusCode, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_wire::nodes::plexd::{
    DrainAcknowledgement, HeartbeatReply, HeartbeatRequest, NodeError, RegisterReply,
    RegisterRequest,
};

use super::config::Config;
use super::error::Error;
use super::identity::Identity;
use super::secret::StoredSecret;

/// Time limit of a call. A server under load answers within this time, or a new
/// attempt is better than a longer wait.
const DEADLINE: Duration = Duration::from_secs(10);

/// A reply is a few hundred bytes, with a list of peers some hundred thousand.
const LARGEST_REPLY: usize = 1 << 20;

/// Longest explanation of a refusal, in characters: people read it in `status.json`.
const LONGEST_MESSAGE: usize = 500;

/// Why a call gave no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No answer, or one that makes no sense. The call may have had an effect
    /// or not.
    NoAnswer { reason: String },
    /// The server asks to try later (408, 429, 5xx).
    Later { status: StatusCode, explanation: String, retry_after: Option<Duration> },
    /// The same call would be answered the same way.
    Refused { status: StatusCode, explanation: String },
}

impl Failure {
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Later { retry_after, .. } => *retry_after,
            Self::NoAnswer { .. } | Self::Refused { .. } => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer { reason } => write!(f, "no usable answer from the server: {reason}"),
            Self::Later { status, explanation, .. } | Self::Refused { status, explanation } => {
                write!(f, "the server answered {}: {explanation}", status.as_u16())
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    api_url: Url,
    calls: CallNames,
}

/// Numbers the calls of one run of an agent, so that a log line of the agent and
/// those of the server about the same call share one request id.
#[derive(Debug)]
struct CallNames {
    life: u32,
    made: AtomicU64,
}

impl CallNames {
    const HEADER: &str = "x-request-id";

    fn draw() -> Result<Self, Error> {
        let life = getrandom::u32().map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self { life, made: AtomicU64::new(0) })
    }

    fn next(&self) -> String {
        format!("agent-{:08x}-{}", self.life, self.made.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Client {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let api_url = &config.api_url;
        let failed = |error: reqwest::Error| Error::Client {
            api_url: api_url.to_string(),
            reason: with_causes(&error),
        };
        // An error means that a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder()
            .timeout(DEADLINE)
            .connect_timeout(DEADLINE)
            // The bearer token is for this server, not for a redirect's target.
            .redirect(redirect::Policy::none())
            // Only the document configures a node, not proxy variables.
            .no_proxy();
        let builder = match &config.authorities {
            // Without this the system's certificates are loaded even for plain
            // HTTP, and a machine that has none gets an error.
            _ if api_url.scheme() == "http" => builder.tls_certs_only([]),
            Some(pem) => builder.tls_certs_only(Certificate::from_pem_bundle(pem).map_err(failed)?),
            None => builder,
        };
        let http = builder.build().map_err(failed)?;
        Ok(Self { http, api_url: api_url.clone(), calls: CallNames::draw()? })
    }

    pub(crate) async fn register(
        &self,
        token: &StoredSecret,
        request: &RegisterRequest,
    ) -> Result<RegisterReply, Failure> {
        let response = self.post(&["register"], token, request).await?;
        decode(response).await
    }

    pub(crate) async fn heartbeat(
        &self,
        identity: &Identity,
        request: &HeartbeatRequest,
    ) -> Result<HeartbeatReply, Failure> {
        let path = ["nodes", &identity.node_id, "heartbeat"];
        let response = self.post(&path, &identity.node_secret_key, request).await?;
        decode(response).await
    }

    pub(crate) async fn drain_acknowledge(
        &self,
        identity: &Identity,
        request: &DrainAcknowledgement,
    ) -> Result<(), Failure> {
        let path = ["nodes", &identity.node_id, "drain"];
        self.post(&path, &identity.node_secret_key, request).await.map(|_| ())
    }

    async fn post<T: Serialize + Sync>(
        &self,
        path: &[&str],
        bearer: &StoredSecret,
        body: &T,
    ) -> Result<Response, Failure> {
        let mut url = self.api_url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        let request_id = self.calls.next();
        let request = self.http.post(url).header(CallNames::HEADER, &request_id);
        let sent = request.bearer_auth(bearer.expose()).json(body).send().await;
        let call = path.last().copied().unwrap_or_default();
        let response = sent.map_err(no_answer).inspect_err(|failure| {
            tracing::debug!(request_id, call, %failure, "asked the server");
        })?;
        let status = response.status();
        if call == "heartbeat" {
            tracing::debug!(request_id, call, status = status.as_u16(), "asked the server");
        } else {
            tracing::info!(request_id, call, status = status.as_u16(), "asked the server");
        }
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let explanation = bearer.redact(&explanation(response).await);
        Err(match status {
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Failure::Later { status, explanation, retry_after }
            }
            _ if status.is_server_error() => Failure::Later { status, explanation, retry_after },
            _ => Failure::Refused { status, explanation },
        })
    }
}

fn no_answer(error: reqwest::Error) -> Failure {
    Failure::NoAnswer { reason: with_causes(&error.without_url()) }
}

/// reqwest's own text says "error sending request"; what a person needs, such
/// as "connection refused", is in the causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Seconds only. A date would need the wall clock, and no server of this
/// protocol sends one.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

async fn decode<T: DeserializeOwned>(response: Response) -> Result<T, Failure> {
    let body = body(response).await?;
    serde_json::from_slice(&body).map_err(|error| Failure::NoAnswer {
        // Only the position: the parser's message may quote the node key.
        reason: format!(
            "its reply is not understood at line {}, column {}",
            error.line(),
            error.column()
        ),
    })
}

async fn body(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(no_answer)? {
        if body.len() + chunk.len() > LARGEST_REPLY {
            return Err(Failure::NoAnswer {
                reason: format!("its reply is longer than {LARGEST_REPLY} bytes"),
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn explanation(response: Response) -> String {
    let body = body(response).await.unwrap_or_default();
    let text = match serde_json::from_slice::<NodeError>(&body) {
        Ok(error) => format!("{} ({})", error.message, error.code),
        Err(_) => "without an explanation".to_owned(),
    };
    text.chars().take(LONGEST_MESSAGE).collect()
}
