//! What an agent is told to deploy. The answer is complete or there is none.

use std::time::Duration;

use axum::Json;
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use slipway_app::access::authenticate;
use slipway_app::fleet::{offers, overview};
use slipway_core::error::Refusal;
use slipway_core::ids::AgentId;
use slipway_wire::fleet::Stack;
use tokio::time::{Instant, timeout_at};

use super::objects::document;
use crate::request::{Answered, Call, Documented as _, Id, Untagged, bearer};

/// The longest time that an answer is held back while nothing changed, in seconds.
pub(crate) const WAIT_MAX: u64 = 30;

/// How often a waiting answer looks again: what another replica changed wakes nobody here.
const INTERVAL: Duration = Duration::from_secs(5);

/// Both modes answer the same: to an agent an absent stack means "remove it". With
/// `If-None-Match` an agent for which nothing changed gets 304, after `wait` seconds.
pub(super) async fn target_state(
    call: Call,
    Id(agent): Id<AgentId>,
    headers: HeaderMap,
) -> Answered {
    if call.query.get("mode").is_some_and(|mode| !["incremental", "full"].contains(&mode)) {
        return Err(Refusal::invalid("mode", "must be `incremental` or `full`").into());
    }
    let until = Instant::now() + wait(&call)?;
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut caller = call.caller;
    loop {
        // Registered before the read, so that a change during it is not missed.
        let changed = call.context.wakes.offers.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let offer = offers::offer(&call.context, &caller, agent).await?;
        let tag = format!("\"{}\"", offer.tag());
        if known.is_none_or(|known| !names(known, &tag)) {
            let objects = offer.objects(&call.context).await?;
            let objects: Vec<_> = objects.iter().map(document).collect();
            return Ok(([(ETAG, tag)], Json(objects)).into_response());
        }
        if Instant::now() >= until {
            return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
        }
        // Either way it looks again.
        let _ = timeout_at(until.min(Instant::now() + INTERVAL), changed).await;
        // The key may have been withdrawn meanwhile.
        let key = bearer(&headers).unwrap_or_default();
        caller = authenticate::api_key(&call.context, key, &caller.correlation_id).await?;
    }
}

fn wait(call: &Call) -> Result<Duration, Refusal> {
    let Some(text) = call.query.get("wait") else { return Ok(Duration::ZERO) };
    let seconds = text.parse().ok().filter(|seconds| *seconds <= WAIT_MAX);
    let problem = || Refusal::invalid("wait", format!("must be a number from 0 to {WAIT_MAX}"));
    seconds.map(Duration::from_secs).ok_or_else(problem)
}

fn names(header: &str, tag: &str) -> bool {
    header.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

pub(super) async fn stacks(call: Call, Id(agent): Id<AgentId>) -> Untagged<Vec<Stack>> {
    let found = overview::stacks_of(&call.context, &call.caller, agent).await?;
    Ok(Json(found.iter().map(slipway_core::fleet::stack::Stack::document).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_what_clients_send() {
        assert!(names("\"a\"", "\"a\""));
        assert!(names("\"x\", W/\"a\"", "\"a\""));
        assert!(names("*", "\"a\""));
        assert!(!names("\"x\"", "\"a\""));
    }
}
