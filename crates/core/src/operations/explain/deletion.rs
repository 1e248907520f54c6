//! A deletion: what it waits for is its grace, then what its target waits for.

use serde_json::json;

use super::resource::part;
use crate::blocker::Blocker;
use crate::deletion::record::{Deletion, DeletionState};
use crate::operations::explanation::{AttemptLine, ExplainedKind, Explanation, Part};
use crate::subject::SubjectKind;

/// `attempts` are those of its target: of the resource, the attempt itself, or those in
/// the project that are not gone. `target` is the explanation of the target, `blockers`
/// are its own.
pub fn deletion(
    deletion: &Deletion,
    attempts: &[AttemptLine],
    blockers: Vec<Blocker>,
    target: Option<&Explanation>,
) -> Explanation {
    let since = deletion.ended_at.or(deletion.done_at).unwrap_or(deletion.requested_at);
    let name = format!("deletion of {} {}", deletion.target.kind, deletion.name);
    let id = deletion.id.as_uuid();
    let mut found =
        Explanation::new(ExplainedKind::Deletion, id, name, deletion.state.as_str(), since);
    let running = deletion.state == DeletionState::Running;
    if let Some(target) = target.filter(|_| running) {
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
        (found.waiting_for, found.next) = match blockers.is_empty() {
            true => (waiting_for(deletion, attempts.len()), next(deletion)),
            false if deletion.state == DeletionState::Done => {
                let waiting_for = "what withholds its purge to be settled";
                let next = "it is looked at again within an hour, and nothing is removed before";
                (Some(waiting_for.to_owned()), next.to_owned())
            }
            // Its grace is over.
            false => {
                let waiting_for = "what is in its way to be gone, or somebody to cancel it";
                let next = "it is tried again by itself, and nothing was touched";
                (Some(waiting_for.to_owned()), next.to_owned())
            }
        };
        found.next_check_at = deletion.scheduled_for.filter(|_| !running);
    }
    found.blockers.extend(blockers);
    found.facts.insert("requested_by", json!(deletion.requested_by));
    found.facts.insert("requested_at", json!(deletion.requested_at));
    found.facts.insert("reason", json!(deletion.reason));
    if let Some(time) = deletion.scheduled_for {
        found.facts.insert("scheduled_for", json!(time));
    }
    if deletion.cascade {
        found.facts.insert("resources", json!(deletion.resources));
    }
    if let Some(until) = deletion.restorable_until {
        found.facts.insert("restorable_until", json!(until));
    }
    if deletion.target.kind != SubjectKind::ProvisionedResource {
        found.parts.push(Part {
            kind: deletion.target.kind.to_string(),
            id: deletion.target.id,
            name: deletion.name.clone(),
            state: match deletion.state.is_open() {
                true => deletion.state.to_string(),
                false => match deletion.state {
                    DeletionState::Cancelled | DeletionState::Restored => "live".to_owned(),
                    _ => "deleted".to_owned(),
                },
            },
            since: None,
            about: Some("what is deleted".to_owned()),
            resource_id: None,
            blockers: Vec::new(),
        });
    }
    // What was restored has attempts that this deletion never saw.
    let attempts = if deletion.state == DeletionState::Restored { &[] } else { attempts };
    let members: Vec<_> = attempts
        .iter()
        .map(|line| {
            let about = match line.abandoned_at {
                Some(at) => format!("a member; abandoned at {at} and not proven gone"),
                None => "a member".to_owned(),
            };
            let mut part = part(line, about);
            // Omit the blockers that the deletion shows itself.
            part.blockers.retain(|blocker| !found.blockers.iter().any(|b| b.code == blocker.code));
            part
        })
        .collect();
    found.parts.extend(members);
    found
}

fn waiting_for(deletion: &Deletion, members: usize) -> Option<String> {
    match (deletion.state, deletion.scheduled_for) {
        (DeletionState::Scheduled, Some(time)) => Some(format!("its grace, which ends at {time}")),
        (DeletionState::Running, _) if deletion.target.kind == SubjectKind::Project => {
            Some(match members {
                0 => "the namespace of the project to be proven gone".to_owned(),
                _ => "the resources of the project to be proven gone".to_owned(),
            })
        }
        (DeletionState::Running, _) => Some("its target to be gone".to_owned()),
        (DeletionState::Purging, _) => Some("its members to be removed".to_owned()),
        _ => None,
    }
}

fn next(deletion: &Deletion) -> String {
    let Deletion { id, .. } = deletion;
    match deletion.state {
        DeletionState::Scheduled => format!(
            "nothing is touched before its grace ends; `slipway deletion cancel {id}` keeps everything as it is"
        ),
        DeletionState::Running => "it goes on with its members".to_owned(),
        DeletionState::Done => match deletion.restorable_until {
            Some(until) if deletion.target.kind != SubjectKind::ProvisionedResource => format!(
                "`slipway deletion restore {id}` brings it back until {until}; then it is purged"
            ),
            Some(until) => format!("nothing: it is over, and its rows are kept until {until}"),
            None => "nothing: it is over, and its rows are kept".to_owned(),
        },
        DeletionState::Purging => "what is left of its members is removed for good".to_owned(),
        DeletionState::Purged | DeletionState::Cancelled | DeletionState::Restored => {
            "nothing: it is over".to_owned()
        }
    }
}
