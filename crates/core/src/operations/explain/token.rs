//! A bootstrap token: why it can or cannot be used.

use serde_json::json;

use super::resource::part;
use crate::broker::phase::Phase;
use crate::nodes::token::{BootstrapToken, TokenState};
use crate::operations::explanation::{AttemptLine, ExplainedKind, Explanation};
use crate::time::Timestamp;

/// `attempt` is the one it was issued for.
pub fn token(token: &BootstrapToken, now: Timestamp, attempt: Option<&AttemptLine>) -> Explanation {
    let state = token.state(now);
    let consumed_at = token.consumed.as_ref().map(|consumed| consumed.at);
    let since = match state {
        TokenState::Usable => Some(token.issued_at),
        TokenState::Consumed => consumed_at,
        TokenState::Revoked => token.revoked_at,
        TokenState::Expired => None,
    };
    let since = since.unwrap_or(token.expires_at);
    let handle = attempt.map_or("", |line| line.handle.as_str());
    let name = format!("{} token of {handle}", token.kind);
    let id = token.id.as_uuid();
    let mut found =
        Explanation::new(ExplainedKind::Token, id, name.trim_end(), state.as_str(), since);
    let phase = attempt.and_then(|line| Phase::parse(&line.phase));
    // The phases in which `nodes::enrol` refuses an enrolment.
    let refused = phase.filter(|phase| *phase == Phase::Failed || phase.is_deletion());
    found.next = match (state, refused) {
        (TokenState::Usable, Some(phase)) => {
            format!("it enrols nobody: its resource is {phase}, which takes no node any more")
        }
        (TokenState::Usable, None) => {
            found.waiting_for = Some("a node agent to enrol with it".to_owned());
            found.deadline = Some(token.expires_at);
            if token.issued_by.is_some() {
                format!("it can be used once, until {}; it is not extended", token.expires_at)
            } else {
                format!(
                    "it can be used once; while its resource waits, its expiry {} is extended, up to {}",
                    token.expires_at, token.hard_expires_at
                )
            }
        }
        (TokenState::Consumed, _) => {
            let node = token.consumed.as_ref().map(|consumed| consumed.node_id.to_string());
            format!(
                "it enrols nobody else: node {} used it up; a retry of the resource mints another",
                node.unwrap_or_default()
            )
        }
        (TokenState::Revoked, _) => {
            "it enrols nobody: another replaced it, or its resource is being deleted".to_owned()
        }
        (TokenState::Expired, _) if token.revoked_at.is_some() => {
            "it enrols nobody: it expired, and another replaced it since".to_owned()
        }
        _ if now >= token.hard_expires_at => {
            "it enrols nobody: it reached its longest life; issue one with `slipway token issue`"
                .to_owned()
        }
        _ => "it enrols nobody: the loop mints another while the resource waits for a node, or \
              issue one with `slipway token issue`"
            .to_owned(),
    };
    found.facts.insert("issued_at", json!(token.issued_at));
    found.facts.insert("expires_at", json!(token.expires_at));
    found.facts.insert("longest_until", json!(token.hard_expires_at));
    if let Some(by) = &token.issued_by {
        found.facts.insert("issued_by", json!(by));
    }
    if let Some(consumed) = &token.consumed {
        found.facts.insert("consumed_by_node_id", json!(consumed.node_id));
    }
    found.resource_id = attempt.map(|line| line.resource_id);
    found.parts =
        attempt.map(|line| part(line, "what it was issued for".to_owned())).into_iter().collect();
    found
}
