//! A deletion: what it waits for is what its target waits for.

use std::collections::BTreeMap;

use serde_json::json;
use uuid::Uuid;

use super::resource::part;
use crate::deletion::record::{Deletion, DeletionState};
use crate::operations::explanation::{AttemptLine, ExplainedKind, Explanation, Part};
use crate::subject::SubjectKind;

/// `names` are those of target and members; `attempts` are those of its target, if that is
/// a resource or an attempt; `target` is the explanation of the target.
pub fn deletion(
    deletion: &Deletion,
    names: &BTreeMap<Uuid, String>,
    attempts: &[AttemptLine],
    target: Option<&Explanation>,
) -> Explanation {
    let since = deletion.done_at.unwrap_or(deletion.requested_at);
    let target_id = deletion.target.id;
    let target_name = names.get(&target_id).cloned().unwrap_or_else(|| target_id.to_string());
    let name = format!("deletion of {} {target_name}", deletion.target.kind);
    let id = deletion.id.as_uuid();
    let mut found =
        Explanation::new(ExplainedKind::Deletion, id, name, deletion.state.as_str(), since);
    let open = matches!(deletion.state, DeletionState::Scheduled | DeletionState::Running);
    if let Some(target) = target.filter(|_| open) {
        found.waiting_for =
            target.waiting_for.as_ref().map(|what| format!("{}: {what}", target.state));
        found.deadline = target.deadline;
        found.overdue = target.overdue;
        found.next = target.next.clone();
        found.next_check_at = target.next_check_at;
        found.holder = target.holder.clone();
        found.blockers = target.blockers.clone();
        found.resource_id = target.resource_id;
    } else {
        let (waiting_for, next) = match deletion.state {
            DeletionState::Scheduled => {
                (Some("the end of its grace"), "it begins when its grace is over")
            }
            DeletionState::Running => (Some("its target to be gone"), "it goes on with its target"),
            DeletionState::Purging => (
                Some("its members to be removed"),
                "what is left of its members is removed for good",
            ),
            DeletionState::Done
            | DeletionState::Purged
            | DeletionState::Cancelled
            | DeletionState::Restored => (None, "nothing: it is over"),
        };
        found.waiting_for = waiting_for.map(str::to_owned);
        found.next = next.to_owned();
    }
    found.facts.insert("requested_by", json!(deletion.requested_by));
    found.facts.insert("requested_at", json!(deletion.requested_at));
    found.facts.insert("reason", json!(deletion.reason));
    if let Some(until) = deletion.restorable_until {
        found.facts.insert("restorable_until", json!(until));
    }
    found.parts = deletion
        .members
        .iter()
        .map(|member| {
            let attempt = attempts.iter().find(|line| {
                member.kind == SubjectKind::ProvisionedResource && line.id.as_uuid() == member.id
            });
            if let Some(line) = attempt {
                // Omit the blockers that the deletion shows itself.
                let about = match line.abandoned_at {
                    Some(at) => format!("a member; abandoned at {at} and not proven gone"),
                    None => "a member".to_owned(),
                };
                let mut part = part(line, about);
                part.blockers
                    .retain(|blocker| !found.blockers.iter().any(|b| b.code == blocker.code));
                return part;
            }
            let leaves_with_attempt = attempts.iter().any(|line| {
                member.kind == SubjectKind::Resource && line.resource_id.as_uuid() == member.id
            });
            Part {
                kind: member.kind.to_string(),
                id: member.id,
                name: names.get(&member.id).cloned().unwrap_or_default(),
                state: match leaves_with_attempt {
                    true => deletion.state.to_string(),
                    false => "deleted".to_owned(),
                },
                since: None,
                about: Some("a member".to_owned()),
                resource_id: None,
                blockers: Vec::new(),
            }
        })
        .collect();
    found
}
