//! The correlation id of a request: in its log lines, its answer and its audit
//! entries. A well-formed `X-Request-Id` of the caller is used as it is, so
//! that one id runs through several systems; without one, the trace id of a
//! `traceparent` is. The span opened here is on every log line of the request.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use crate::state::ServerState;
use crate::trace_parent::{self, TraceParent};

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// Long enough for a UUID or a trace id with a prefix, short enough for rows.
const MAX_LENGTH: usize = 64;

/// The id of the current request, an extension of the request.
#[derive(Debug, Clone)]
pub(crate) struct CorrelationId(pub(crate) String);

pub(crate) async fn name(
    State(state): State<ServerState>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = text(request.headers(), &HEADER);
    let parent = text(request.headers(), &TRACE_PARENT).and_then(trace_parent::parse);
    let id = match (given.filter(|text| is_sane(text)), &parent) {
        (Some(text), _) => text.to_owned(),
        (None, Some(TraceParent { trace_id, .. })) => (*trace_id).to_owned(),
        (None, None) => state.context.entropy.uuid().to_string(),
    };
    // The query is left out: it is the caller's text and may be long. The span
    // has level ERROR, so that no log filter strips the id from a line that it
    // lets through.
    let span = tracing::error_span!(
        "request",
        correlation_id = id,
        method = %request.method(),
        path = request.uri().path(),
        trace_id = parent.as_ref().map(|parent| parent.trace_id),
        parent_span_id = parent.as_ref().map(|parent| parent.span_id),
    );
    let routine = is_routine(&request);
    request.extensions_mut().insert(CorrelationId(id.clone()));
    let begun = Instant::now();
    let answered = async {
        let response = next.run(request).await;
        let status = response.status().as_u16();
        let milliseconds = begun.elapsed().as_millis();
        if routine {
            tracing::debug!(status, milliseconds, "answered");
        } else {
            tracing::info!(status, milliseconds, "answered");
        }
        response
    };
    let mut response = answered.instrument(span).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Reads change nothing, and every node sends a heartbeat every few seconds.
fn is_routine(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    matches!(*request.method(), Method::GET | Method::HEAD) || route.ends_with("/heartbeat")
}

/// Logs and headers contain the id, so only harmless characters are allowed.
fn is_sane(text: &str) -> bool {
    (1..=MAX_LENGTH).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::is_sane;

    #[test]
    fn only_harmless_names_are_taken_over() {
        for good in ["a", "0192f0c1-2b3c-7d4e-8f50-123456789abc", "trace:1_2.3", &"x".repeat(64)] {
            assert!(is_sane(good), "{good}");
        }
        for bad in ["", "a b", "a\"b", "a\u{1b}[31m", "é", &"x".repeat(65)] {
            assert!(!is_sane(bad), "{bad:?}");
        }
    }
}
