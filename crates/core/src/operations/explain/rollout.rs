//! Why a roll-out is where it is.

use serde_json::json;

use crate::operations::explanation::{ExplainedKind, Explanation, Part};
use crate::rollouts::record::{Member, Progress, Rollout, RolloutState};

/// `shown` are the members that matter: those in work, and those that failed.
pub fn rollout(rollout: &Rollout, progress: &Progress, shown: &[Member]) -> Explanation {
    let since = rollout.ended_at.unwrap_or(rollout.requested_at);
    let id = rollout.id.as_uuid();
    let state = rollout.state.as_str();
    let mut found = Explanation::new(ExplainedKind::Rollout, id, rollout.title(), state, since);
    found.waiting_for = match rollout.state {
        RolloutState::Running => {
            Some("its members to become healthy, one wave after another".to_owned())
        }
        RolloutState::Paused => Some("somebody to resume it, or to end it".to_owned()),
        RolloutState::RollingBack => {
            Some("its members to become healthy with what they had".to_owned())
        }
        _ => None,
    };
    found.next = match rollout.state {
        RolloutState::Running => "the next members are changed when there is room".to_owned(),
        RolloutState::Paused => format!(
            "nothing; `slipway rollout resume {name}` goes on, `slipway rollout abort {name} --roll-back` gives everybody back what they had",
            name = rollout.name
        ),
        RolloutState::RollingBack => "the next members get back what they had".to_owned(),
        _ => "nothing".to_owned(),
    };
    let counts = progress.0.iter().map(|(state, count)| (state.as_str(), *count));
    let counts: std::collections::BTreeMap<_, _> = counts.collect();
    found.facts.insert("members", json!(counts));
    found.facts.insert("requested_by", json!(rollout.requested_by));
    found.facts.insert("requested_at", json!(rollout.requested_at));
    found.facts.insert("reason", json!(rollout.reason));
    if let Some(message) = &rollout.message {
        found.facts.insert("message", json!(message));
    }
    found.parts = shown
        .iter()
        .map(|member| Part {
            kind: member.subject.kind.to_string(),
            id: member.subject.id,
            name: member.name.clone(),
            state: member.state.to_string(),
            since: member.changed_at,
            about: member.message.clone(),
            resource_id: None,
            blockers: Vec::new(),
        })
        .collect();
    found
}
