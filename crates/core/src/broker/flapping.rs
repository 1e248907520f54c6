//! Flapping: how long ago a resource was set back, however often it changed its
//! phase meanwhile.
//!
//! A deadline measured from the start of a phase never passes for a resource that
//! flaps: if its agent dies every minute, it is Provisioning for seconds at a time,
//! for ever. So the flapping window has a start of its own, `unsettled_since`. It
//! starts when a settled resource, or one that comes up for the first time, goes back to
//! an earlier phase, and ends when Ready has lasted for [`settled_after`]; a shorter
//! Ready is part of it. A resource that was never set back has no window, however long
//! it takes: its `unsettled_since` is that of its declaration.
//!
//! Nothing writes that end: a Ready that lasted long enough is settled by its age
//! alone, and the next window overwrites the start of the last one. A settled
//! resource costs no write.

use std::time::Duration;

use serde_json::json;

use crate::blocker::{Blocker, BlockerCode, Deadlines};
use crate::broker::attempt::ProvisionedResource;
use crate::broker::phase::Phase;
use crate::broker::snapshot::ResourceSnapshot;
use crate::time::Timestamp;

/// How long Ready has to last to end the flapping window: as long as a new
/// resource may stay Pending. If it were shorter, an agent that dies every few
/// minutes would count as settled; if it were longer, a repaired resource would
/// keep its blocker for no use.
pub const fn settled_after(deadlines: &Deadlines) -> Duration {
    deadlines.pending
}

/// The start of the flapping window; `None` if the resource was never set back, or is
/// settled, failed or being deleted.
pub fn flapping_since(
    attempt: &ProvisionedResource,
    deadlines: &Deadlines,
    now: Timestamp,
) -> Option<Timestamp> {
    let is_open = match attempt.phase() {
        Phase::Pending | Phase::Provisioning | Phase::Enrolling => true,
        Phase::Ready => now.since(attempt.phase_since()) < settled_after(deadlines),
        Phase::Failed | Phase::Deregistering | Phase::Deprovisioning | Phase::Deleted => false,
    };
    (is_open && was_set_back(attempt)).then(|| attempt.unsettled_since())
}

/// Whether it ever went back to an earlier phase.
fn was_set_back(attempt: &ProvisionedResource) -> bool {
    attempt.unsettled_since() > attempt.created_at()
}

/// The start of the window to record when the attempt enters a phase.
pub(crate) fn transition(
    before: &ProvisionedResource,
    into: Phase,
    deadlines: &Deadlines,
    now: Timestamp,
) -> Timestamp {
    if into < before.phase() && !into.is_deletion() {
        flapping_since(before, deadlines, now).unwrap_or(now)
    } else {
        before.unsettled_since()
    }
}

/// When the flapping window has lasted too long for this phase: when a straight
/// way through the phases would be overdue even if it used up every deadline. A
/// resource that keeps its deadlines and does not go back again does not reach it.
/// `None` in the first phase of the window, whose own deadline suffices.
pub fn flapping_deadline(
    attempt: &ProvisionedResource,
    deadlines: &Deadlines,
) -> Option<Timestamp> {
    let walk = match attempt.phase() {
        Phase::Pending => deadlines.pending,
        Phase::Provisioning => deadlines.pending + deadlines.provisioning,
        Phase::Enrolling => deadlines.pending + deadlines.provisioning + deadlines.enrolling,
        Phase::Ready
        | Phase::Failed
        | Phase::Deregistering
        | Phase::Deprovisioning
        | Phase::Deleted => return None,
    };
    let since = attempt.unsettled_since();
    (was_set_back(attempt) && since < attempt.phase_since()).then(|| since.plus(walk))
}

/// The blocker of a window that lasts too long. Once raised it stays until the
/// resource has settled, also while the resource is briefly Ready or in a phase
/// that may last longer; otherwise it would come and go with them.
pub(crate) fn blocker(
    snapshot: &ResourceSnapshot,
    attempt: &ProvisionedResource,
    deadlines: &Deadlines,
    next_retry_at: Option<Timestamp>,
) -> Option<Blocker> {
    let now = snapshot.now;
    let since = flapping_since(attempt, deadlines, now)?;
    let raised = snapshot.blockers.iter().any(|found| found.code == BlockerCode::Unsettled);
    let overdue = flapping_deadline(attempt, deadlines).is_some_and(|deadline| now >= deadline);
    if !raised && !overdue {
        return None;
    }
    let settled_after = settled_after(deadlines).as_secs();
    Some(Blocker {
        code: BlockerCode::Unsettled,
        message: format!(
            "it was set back at {since} and has not stayed Ready for {settled_after} s since; find out what sets it back"
        ),
        since: now,
        evidence: json!({ "unsettled_since": since, "settled_after_seconds": settled_after }),
        next_retry_at,
    })
}

#[cfg(test)]
mod tests;
