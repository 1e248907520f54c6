//! Unrest: how long a resource has been coming up, however often it changed
//! its phase meanwhile.
//!
//! A deadline measured from the beginning of a phase never passes for one that
//! flaps: an agent that dies every minute is Provisioning for seconds at a
//! time, for ever. So the flapping_since has a beginning of its own. It begins with the
//! declaration, or when a settled resource leaves Ready, and ends when Ready
//! has lasted for [`settled_after`]; a shorter Ready is part of it.
//!
//! That end is not written anywhere: a Ready that lasted long enough is settled
//! by its age alone, and the next flapping_since overwrites the beginning of the last
//! one. A settled resource costs no write.

use std::time::Duration;

use serde_json::json;

use crate::blocker::{Blocker, BlockerCode, Deadlines};
use crate::phase::Phase;
use crate::provisioned_resource::ProvisionedResource;
use crate::snapshot::ResourceSnapshot;
use crate::time::Timestamp;

/// How long Ready has to last for the flapping_since before it to be over: as long as
/// a fresh resource may take to begin. Shorter, and an agent that dies every
/// few minutes would count as well; longer, and a repaired one would carry its
/// blocker for no use.
pub const fn settled_after(deadlines: &Deadlines) -> Duration {
    deadlines.pending
}

/// Since when the resource is unsettled; `None` if it is not, or is on its way
/// out. Rows of an older version do not say; theirs began with the phase.
pub fn flapping_since(
    attempt: &ProvisionedResource,
    deadlines: &Deadlines,
    now: Timestamp,
) -> Option<Timestamp> {
    match attempt.phase() {
        Phase::Pending | Phase::Provisioning | Phase::Enrolling => {
            Some(attempt.unsettled_since().unwrap_or_else(|| attempt.phase_since()))
        }
        Phase::Ready => attempt
            .unsettled_since()
            .filter(|_| now.since(attempt.phase_since()) < settled_after(deadlines)),
        Phase::Failed | Phase::Deregistering | Phase::Deprovisioning | Phase::Deleted => None,
    }
}

/// What is recorded as the beginning when the attempt crosses into a phase.
pub(crate) fn transition(
    before: &ProvisionedResource,
    into: Phase,
    deadlines: &Deadlines,
    now: Timestamp,
) -> Option<Timestamp> {
    match into {
        Phase::Pending | Phase::Provisioning | Phase::Enrolling | Phase::Ready => {
            Some(flapping_since(before, deadlines, now).unwrap_or(now))
        }
        Phase::Failed | Phase::Deregistering | Phase::Deprovisioning | Phase::Deleted => {
            before.unsettled_since()
        }
    }
}

/// When an flapping_since that has got to this phase has lasted for too long: when a
/// straight walk would be overdue that used up every deadline on its way. One
/// that keeps its deadlines and never walks back does not meet it. `None` where
/// the phase is the first of its flapping_since, whose own deadline says as much.
pub fn deadline_of(attempt: &ProvisionedResource, deadlines: &Deadlines) -> Option<Timestamp> {
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
    let since = attempt.unsettled_since()?;
    (since < attempt.phase_since()).then(|| since.plus(walk))
}

/// The blocker of an flapping_since that lasts for too long. Once raised it stays until
/// the resource has settled, also through the short times in which it is Ready
/// or in a phase that may last longer; it would come and go with them.
pub(crate) fn blocker(
    snapshot: &ResourceSnapshot,
    attempt: &ProvisionedResource,
    deadlines: &Deadlines,
    next_retry_at: Option<Timestamp>,
) -> Option<Blocker> {
    let now = snapshot.now;
    let since = flapping_since(attempt, deadlines, now)?;
    let raised = snapshot.blockers.iter().any(|found| found.code == BlockerCode::Unsettled);
    let overdue = deadline_of(attempt, deadlines).is_some_and(|deadline| now >= deadline);
    if !raised && !overdue {
        return None;
    }
    let settled_after = settled_after(deadlines).as_secs();
    Some(Blocker {
        code: BlockerCode::Unsettled,
        message: format!(
            "it has not stayed Ready for {settled_after} s since {since}; look at what takes it back"
        ),
        since: now,
        evidence: json!({ "unsettled_since": since, "settled_after_seconds": settled_after }),
        next_retry_at,
    })
}

#[cfg(test)]
mod tests;
