//! The error writer of the node protocol. Statuses are those of
//! [`crate::error`]; only the document differs.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use slipway_app::access::authenticate;
use slipway_wire::nodes::plexd::NodeError;

use super::nodes::admit;
use crate::error::{Rejection, write_json};
use crate::request::bearer;
use crate::state::ServerState;

pub(super) async fn write(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Some(rejection) = response.extensions_mut().remove::<Rejection>() {
        rejection.log();
        let document = NodeError {
            code: rejection.refusal.kind.code().to_owned(),
            message: rejection.refusal.message,
        };
        write_json(&mut response, "application/json", &document);
    }
    response
}

/// Answers every other route, to a node with its key. The agent continues without the
/// feature.
pub(super) async fn not_provisioned(
    State(state): State<ServerState>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Rejection> {
    let key = bearer(&headers).unwrap_or_default();
    let node = authenticate::node_key(&state.context, key).await?;
    let in_path = uri.path().strip_prefix("/nodes/").and_then(|rest| rest.split('/').next());
    admit(&state, node, in_path.unwrap_or(&node.to_string()))?;
    let feature = feature(uri.path());
    let document = NodeError {
        message: format!("this server does not offer `{feature}`; go on without it"),
        code: format!("{feature}_not_provisioned"),
    };
    Ok((StatusCode::NOT_IMPLEMENTED, Json(document)).into_response())
}

/// The feature that a path asks for, as a code: snake_case, bounded. In paths
/// of a node it is the segment after the id (`secrets` of
/// `/nodes/1/secrets/key`; what follows is the agent's own name), below `state`
/// the next one, elsewhere the last.
fn feature(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let last = match segments[..] {
        ["nodes", _, "state", part, ..] | ["nodes", _, part, ..] => part,
        [.., last] => last,
        [] => "",
    };
    // The event stream has a special code: it tells agents that they have to
    // poll.
    if last == "events" {
        return "signed_event_bus".to_owned();
    }
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }
    };
    let name: String = last.chars().take(40).map(plain).collect();
    let name = name.trim_matches('_');
    if name.is_empty() { "feature".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_named_after_what_is_wanted() {
        let table = [
            ("/nodes/1/state", "state"),
            ("/nodes/1/events", "signed_event_bus"),
            ("/nodes/1/secrets/database", "secrets"),
            ("/nodes/1/state/reports/a-key", "reports"),
            ("/keys/rotate", "rotate"),
            ("/Artifacts/Latest-Version/", "latest_version"),
            ("/", "feature"),
            ("/%22%00", "22_00"),
        ];
        for (path, expected) in table {
            assert_eq!(feature(path), expected, "{path}");
        }
        assert_eq!(feature(&format!("/{}", "x".repeat(99))).len(), 40);
    }
}
