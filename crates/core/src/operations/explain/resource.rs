//! A resource: its current attempt, and older ones that are not yet proven gone.

use std::time::Duration;

use serde_json::{Value, json};

use crate::blocker::{self, Blocker, BlockerCode, Deadlines};
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::broker::waiting;
use crate::deletion::record::Deletion;
use crate::ids::{DeletionId, ProvisionedResourceId};
use crate::operations::explanation::{AttemptLine, ExplainedKind, Explanation, Holder, Part};
use crate::time::Timestamp;

/// How long things may take before the explanation reports them.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    pub deadlines: Deadlines,
    /// How long a row may be due without being claimed.
    pub claimed_within: Duration,
}

/// `attempts` are all attempts of the resource, read from their rows.
pub fn resource(
    snapshot: &ResourceSnapshot,
    attempts: &[AttemptLine],
    timeouts: Timeouts,
) -> Explanation {
    let attempt = &snapshot.attempt;
    let own = attempts.iter().find(|line| line.id == attempt.id());
    let mut found = Explanation::new(
        ExplainedKind::Resource,
        snapshot.resource.id.as_uuid(),
        snapshot.resource.handle.as_str(),
        attempt.phase().as_str(),
        attempt.phase_since(),
    );
    found.waiting_for = waiting::waiting_for(snapshot);
    found.deadline = waiting::shown_deadline(snapshot, &timeouts.deadlines);
    found.overdue = found.deadline.is_some_and(|deadline| deadline <= snapshot.now);
    found.next_check_at = snapshot.due_at;
    found.holder = own.and_then(|line| line.holder.clone());
    // After a retry the new attempt has failed in nothing yet.
    found.failure = own.and_then(|line| line.failure.clone());
    if let (None, Some(since)) = (&found.waiting_for, snapshot.update_pending_since()) {
        found.waiting_for = Some(format!("its update of {since} to reach the substrate"));
    }
    found.observed = snapshot.observed_shown();
    found.observed_since = snapshot.observed_since();
    found.observed_stale = snapshot.observed_stale(timeouts.claimed_within);
    found.node = snapshot.node.clone();
    found.resource_id = Some(snapshot.resource.id);
    found.blockers = snapshot.blockers_shown();
    let unserved = waiting::not_served(snapshot, timeouts.claimed_within);
    let served = unserved.is_none();
    found.blockers.extend(unserved);
    if found.waiting_for.is_none() && !found.blockers.is_empty() {
        found.waiting_for =
            Some("its blockers to be resolved, so that it stays as it is".to_owned());
    }
    if let (None, Some(beside)) = (&found.waiting_for, snapshot.beside()) {
        found.waiting_for = Some(match beside.attempt.phase().is_deletion() {
            true => format!("attempt {} beside it to be gone", beside.attempt.attempt()),
            false => {
                format!("attempt {} to be Ready, which then replaces it", beside.attempt.attempt())
            }
        });
    }
    found.next = next(snapshot, found.holder.as_ref(), served);
    facts(&mut found, snapshot);
    found.parts = attempts
        .iter()
        .filter(|line| line.id != attempt.id())
        .filter(|line| line.failure.is_some() || !is_over(line))
        .map(|line| part(line, if line.in_use { older(line) } else { beside(snapshot, line) }))
        .collect();
    found.notice = snapshot.deletion.as_ref().and_then(Deletion::notice);
    let of_other = snapshot.other.as_ref().and_then(|other| other.deletion.as_ref());
    let of_other = of_other.filter(|of_other| {
        snapshot.deletion.as_ref().is_none_or(|deletion| deletion.id != of_other.id)
    });
    for deletion in snapshot.deletion.iter().chain(of_other) {
        found.parts.push(Part {
            kind: DeletionId::KIND.to_owned(),
            id: deletion.id.as_uuid(),
            name: deletion.reason.clone(),
            state: deletion.state.to_string(),
            since: Some(deletion.done_at.unwrap_or(deletion.requested_at)),
            about: Some(format!("asked for by {}", deletion.requested_by)),
            resource_id: None,
            blockers: Vec::new(),
        });
    }
    found
}

/// Explains an attempt that is not its resource's own, from what its row says: another one
/// followed it, or is in use beside it.
pub fn attempt(line: &AttemptLine) -> Explanation {
    let name = format!("{} attempt {}", line.handle, line.number);
    let id = line.id.as_uuid();
    let mut found = Explanation::new(ExplainedKind::Attempt, id, name, &line.phase, line.since);
    found.next = match is_over(line) {
        true if line.in_use => "nothing: another attempt followed it".to_owned(),
        true => "nothing: it never came in use".to_owned(),
        false if line.in_use => format!("{}; another attempt followed it", taken_down(line)),
        false if is_leaving(line) => format!("{}; it never came in use", taken_down(line)),
        false => "once it is Ready it replaces the attempt in use".to_owned(),
    };
    found.waiting_for = match is_over(line) {
        true => None,
        false if is_leaving(line) => Some(awaited(line).to_owned()),
        false => Some("it to be Ready".to_owned()),
    };
    found.next_check_at = line.due_at;
    found.holder = line.holder.clone();
    found.failure = line.failure.clone();
    found.resource_id = Some(line.resource_id);
    found.attempt = Some(line.number);
    found.blockers = shown(line);
    found.facts.insert("attempt", json!(line.number));
    found.facts.insert("resource_id", json!(line.resource_id));
    found.facts.insert("blueprint_version", json!(line.blueprint_version));
    found.facts.insert("parameters", json!(line.parameters));
    found
}

/// Explains a resource whose current row breaks an invariant, from what the row
/// still tells. A reader may be the first to notice, so the reason is shown
/// even if no loop has recorded it.
pub fn quarantined(current: &AttemptLine, reason: &str) -> Explanation {
    let id = current.resource_id;
    let mut found = Explanation::new(
        ExplainedKind::Resource,
        id.as_uuid(),
        &current.handle,
        &current.phase,
        current.since,
    );
    found.waiting_for =
        Some("a person to repair its row: it breaks an invariant and is quarantined".into());
    found.next_check_at = current.due_at;
    found.holder = current.holder.clone();
    found.resource_id = Some(id);
    found.next = match current.due_at {
        Some(due) => format!("its row is read again at {due}, and worked on if it is valid then"),
        None => "nothing by itself".to_owned(),
    };
    found.blockers = shown(current);
    let says_so = |blocker: &Blocker| {
        matches!(blocker.code, BlockerCode::RowInvalid | BlockerCode::NodeDeregistrationFailed)
    };
    if !found.blockers.iter().any(says_so) {
        let unreadable =
            blocker::of_unreadable(current.id, reason, None, current.now, current.due_at);
        found.blockers.push(unreadable);
    }
    found.failure = current.failure.clone();
    found.facts.insert("attempt", json!(current.number));
    found
}

/// One sentence about what the loop does next.
fn next(snapshot: &ResourceSnapshot, holder: Option<&Holder>, served: bool) -> String {
    let attempt = &snapshot.attempt;
    if let Some(holder) = holder {
        return format!(
            "{} is working on it; its claim lasts until {} unless renewed",
            holder.worker, holder.until
        );
    }
    match (attempt.phase(), snapshot.due_at) {
        (Phase::Deleted, _) if attempt.absence_proven_at().is_some() => {
            let at = attempt.absence_proven_at().map(|at| at.to_string()).unwrap_or_default();
            format!("nothing: it is gone, proven twice at {at}")
        }
        (Phase::Deleted, _) if attempt.abandoned_at().is_some() => {
            let at = attempt.abandoned_at().map(|at| at.to_string()).unwrap_or_default();
            format!(
                "nothing: it was abandoned at {at}, and nobody proved it gone; `slipway leaks` lists what may still exist"
            )
        }
        (_, Some(_)) if !served => "nothing until a control plane serves its cluster".to_owned(),
        (_, Some(due)) if due <= snapshot.now => {
            "it is due now and the loop claims it next".to_owned()
        }
        (_, Some(due)) => format!("the loop observes it again at {due} at the latest"),
        (Phase::Failed, None) => {
            "nothing by itself: Failed is final until somebody retries or deletes it".to_owned()
        }
        (_, None) => "nothing by itself".to_owned(),
    }
}

fn facts(found: &mut Explanation, snapshot: &ResourceSnapshot) {
    let attempt = &snapshot.attempt;
    let mut put = |name, value: Option<Value>| {
        if let Some(value) = value {
            found.facts.insert(name, value);
        }
    };
    put("attempt", Some(json!(attempt.attempt())));
    put("engine", Some(json!(snapshot.blueprint.engine)));
    put("cluster", snapshot.placement.as_ref().map(|placement| json!(placement.cluster)));
    put("namespace", snapshot.placement.as_ref().map(|placement| json!(placement.namespace)));
    let retried = |deletion: &Deletion| deletion.target == attempt.id().into();
    let next = attempt.correction().filter(|_| snapshot.deletion.as_ref().is_some_and(retried));
    put("next_parameters", next.map(|next| json!(next.parameter_values)));
    put("next_blueprint_version_id", next.map(|next| json!(next.blueprint_version_id)));
    put("failures_in_a_row", (snapshot.failures > 0).then(|| json!(snapshot.failures)));
    put("unsettled_since", Some(json!(attempt.unsettled_since())));
    put("absence_proven_at", attempt.absence_proven_at().map(|at| json!(at)));
    put("abandoned_at", attempt.abandoned_at().map(|at| json!(at)));
    let waits = matches!(attempt.phase(), Phase::Pending | Phase::Provisioning | Phase::Enrolling);
    let token = snapshot.token.as_ref().filter(|_| waits);
    put("token_id", token.map(|token| json!(token.id)));
    put("token_expires_at", token.map(|token| json!(token.expires_at)));
}

/// Whether nothing is left to do about the attempt.
fn is_over(line: &AttemptLine) -> bool {
    line.phase == Phase::Deleted.as_str() && is_gone(line) && line.blockers.is_empty()
}

/// Whether nobody proves its absence any more.
fn is_gone(line: &AttemptLine) -> bool {
    line.absence_proven_at.is_some() || line.abandoned_at.is_some()
}

fn older(line: &AttemptLine) -> String {
    let failed = line.failure.as_ref();
    let failed = failed.map(|failure| format!("it failed at {}: {}", failure.at, failure.reason));
    let rest = (!is_over(line)).then(|| taken_down(line).to_owned());
    let said: Vec<_> = failed.into_iter().chain(rest).collect();
    format!("an older attempt; {}", said.join("; "))
}

/// An attempt that was made beside the one in use.
fn beside(snapshot: &ResourceSnapshot, line: &AttemptLine) -> String {
    let (handle, number) = (&snapshot.resource.handle, snapshot.attempt.attempt());
    let failed = line.failure.as_ref();
    let failed = failed.map(|failure| format!("it failed at {}: {}", failure.at, failure.reason));
    let rest = match (is_leaving(line), is_over(line)) {
        (false, _) if line.phase == Phase::Failed.as_str() => format!(
            "attempt {number} stays in use; `slipway resource retry {handle}` tries again, `slipway resource replace {handle} --abort` takes it away"
        ),
        (false, _) => format!("it replaces attempt {number} once it is Ready"),
        (true, true) => "it never came in use".to_owned(),
        (true, false) => format!("it does not come in use; {}", taken_down(line)),
    };
    let said: Vec<_> = failed.into_iter().chain([rest]).collect();
    format!("beside attempt {number}; {}", said.join("; "))
}

fn is_leaving(line: &AttemptLine) -> bool {
    Phase::parse(&line.phase).is_some_and(Phase::is_deletion)
}

/// What is left to do about an attempt that another one follows.
fn taken_down(line: &AttemptLine) -> &'static str {
    if line.phase == Phase::Deleted.as_str() {
        "its absence is still to be proven a second time"
    } else {
        "it is still being taken down"
    }
}

/// What has to happen for that.
fn awaited(line: &AttemptLine) -> &'static str {
    match (line.phase == Phase::Deleted.as_str(), is_gone(line)) {
        (false, _) => "its node and its substrate to be gone",
        (true, false) => "the second proof of its absence",
        (true, true) => "its blockers to be resolved",
    }
}

/// An attempt as a part of something else.
pub(super) fn part(line: &AttemptLine, about: String) -> Part {
    Part {
        kind: ProvisionedResourceId::KIND.to_owned(),
        id: line.id.as_uuid(),
        name: format!("{} attempt {}", line.handle, line.number),
        state: line.phase.clone(),
        since: Some(line.since),
        about: Some(about),
        resource_id: Some(line.resource_id),
        blockers: shown(line),
    }
}

/// The same as [`ResourceSnapshot::blockers_shown`].
fn shown(line: &AttemptLine) -> Vec<Blocker> {
    let next: Option<Timestamp> = line.due_at;
    line.blockers.iter().map(|blocker| Blocker { next_retry_at: next, ..blocker.clone() }).collect()
}
