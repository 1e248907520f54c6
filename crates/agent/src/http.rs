//! Calls to a control plane over HTTP, as every agent makes them: one attempt each,
//! with a time limit, a bounded answer and a request id. The callers decide whether
//! and when to try again.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Certificate, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::secret::StoredSecret;

/// Time limit of a call. A server under load answers within this time, or a new
/// attempt is better than a longer wait.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// A refusal is a few hundred bytes.
const LARGEST_REFUSAL: usize = 1 << 20;

/// Longest explanation of a refusal, in characters: people read it.
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

    /// The status of a refusal.
    pub(crate) fn refusal(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::NoAnswer { .. } | Self::Later { .. } => None,
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

/// The client of one control plane.
#[derive(Debug)]
pub(crate) struct Http {
    client: reqwest::Client,
    base: Url,
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

    fn draw() -> Result<Self, String> {
        let life = getrandom::u32().map_err(|error| format!("no random bytes: {error}"))?;
        Ok(Self { life, made: AtomicU64::new(0) })
    }

    fn next(&self) -> String {
        format!("agent-{:08x}-{}", self.life, self.made.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Http {
    /// A client of the server at `base`, which trusts `authorities` (PEM) instead of
    /// the machine's, if there are any.
    pub(crate) fn new(base: &Url, authorities: Option<&[u8]>) -> Result<Self, String> {
        // An error means that a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder()
            .timeout(DEADLINE)
            .connect_timeout(DEADLINE)
            // The bearer token is for this server, not for a redirect's target.
            .redirect(redirect::Policy::none())
            // Only its settings configure an agent, not proxy variables.
            .no_proxy();
        let failed = |error: reqwest::Error| with_causes(&error);
        let builder = match authorities {
            // Without this the system's certificates are loaded even for plain
            // HTTP, and a machine that has none gets an error.
            _ if base.scheme() == "http" => builder.tls_certs_only([]),
            Some(pem) => builder.tls_certs_only(Certificate::from_pem_bundle(pem).map_err(failed)?),
            None => builder,
        };
        let client = builder.build().map_err(failed)?;
        Ok(Self { client, base: base.clone(), calls: CallNames::draw()? })
    }

    pub(crate) fn request(&self, method: reqwest::Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        self.client.request(method, url)
    }

    /// Sends a request. `call` is its name in the log; a routine one is logged for
    /// those who search only.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        bearer: &StoredSecret,
        call: &str,
        is_routine: bool,
    ) -> Result<Response, Failure> {
        let request_id = self.calls.next();
        let request = request.header(CallNames::HEADER, &request_id);
        let sent = request.bearer_auth(bearer.expose()).send().await;
        let response = sent.map_err(no_answer).inspect_err(|failure| {
            tracing::debug!(request_id, call, %failure, "asked the server");
        })?;
        let status = response.status();
        if is_routine {
            tracing::debug!(request_id, call, status = status.as_u16(), "asked the server");
        } else {
            tracing::info!(request_id, call, status = status.as_u16(), "asked the server");
        }
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
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

/// Seconds only. A date would need the wall clock, and no server of these
/// protocols sends one.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The answer as a value; an answer of more than `largest` bytes is refused.
pub(crate) async fn decode<T: DeserializeOwned>(
    response: Response,
    largest: usize,
) -> Result<T, Failure> {
    let body = body(response, largest).await?;
    serde_json::from_slice(&body).map_err(|error| Failure::NoAnswer {
        // Only the position: the parser's message may quote what is secret.
        reason: format!(
            "its reply is not understood at line {}, column {}",
            error.line(),
            error.column()
        ),
    })
}

async fn body(mut response: Response, largest: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(no_answer)? {
        if body.len() + chunk.len() > largest {
            return Err(Failure::NoAnswer {
                reason: format!("its reply is longer than {largest} bytes"),
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What every protocol says about a refusal.
#[derive(Deserialize)]
struct Explained {
    code: String,
    message: String,
}

async fn explanation(response: Response) -> String {
    let body = body(response, LARGEST_REFUSAL).await.unwrap_or_default();
    let text = match serde_json::from_slice::<Explained>(&body) {
        Ok(error) => format!("{} ({})", error.message, error.code),
        Err(_) => "without an explanation".to_owned(),
    };
    text.chars().take(LONGEST_MESSAGE).collect()
}
