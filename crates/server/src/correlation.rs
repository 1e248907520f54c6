//! The name of a request: in its log lines, its answer and its audit entries.
//! A caller's `X-Request-Id` is taken over if it is harmless, so that one name
//! runs through several systems.

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use crate::state::ServerState;

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Long enough for a UUID or a trace id with a prefix; it is repeated in rows.
const MAX_LENGTH: usize = 64;

/// The name of the request in hand, found in its extensions.
#[derive(Debug, Clone)]
pub(crate) struct CorrelationId(pub(crate) String);

pub(crate) async fn name(
    State(state): State<ServerState>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
    let id = match given.filter(|text| is_sane(text)) {
        Some(text) => text.to_owned(),
        None => state.context.entropy.uuid().to_string(),
    };
    // The query is left out: it is the caller's text and may be long.
    let span = tracing::info_span!(
        "request",
        correlation_id = id,
        method = %request.method(),
        path = request.uri().path(),
    );
    request.extensions_mut().insert(CorrelationId(id.clone()));
    let mut response = next.run(request).instrument(span).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

/// It is written to logs and headers, so only what cannot be mistaken there.
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
