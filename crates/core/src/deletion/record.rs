//! Deletions: one record for each, whatever is deleted. It says what, by whom,
//! why, when it begins, and until when it can be restored. Its members are the rows
//! that carry its id; the record has no list of them.
//!
//! ```text
//!                    ┌─ cancelled
//!  (grace) scheduled ┤
//!                    └─ running ── done ── purging ── purged
//!                                    └──── restored
//! ```
//!
//! Without grace a deletion begins as running, and as done if nothing outside has to go
//! first.

use std::time::Duration;

use crate::closed_set::closed_set;
use crate::ids::{DeletionId, ProjectId, Revision};
use crate::subject::Subject;
use crate::time::Timestamp;

closed_set!(
    /// scheduled → running → done → purging → purged, or cancelled, or restored.
    DeletionState {
        Scheduled => "scheduled",
        Running => "running",
        Done => "done",
        Purging => "purging",
        Purged => "purged",
        Cancelled => "cancelled",
        Restored => "restored",
    }
);

impl DeletionState {
    /// Whether a deletion in this state may enter the other one. Nothing leaves the states
    /// that end it, and purging is the point of no return.
    pub const fn may_become(self, next: Self) -> bool {
        use DeletionState::{Cancelled, Done, Purged, Purging, Restored, Running, Scheduled};
        matches!(
            (self, next),
            (Scheduled, Running | Done | Cancelled)
                // The teardown of a retry, if the resource is deleted meanwhile.
                | (Running, Done | Cancelled)
                | (Done, Purging | Restored)
                | (Purging, Purged)
        )
    }

    /// Whether nothing follows it.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Purged | Self::Cancelled | Self::Restored)
    }

    /// Whether its target is leaving, or will.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Scheduled | Self::Running)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    pub id: DeletionId,
    pub target: Subject,
    /// The name of the target at the request; the row may be gone.
    pub name: String,
    /// The project that the target is or belongs to.
    pub project_id: Option<ProjectId>,
    pub state: DeletionState,
    pub requested_by: String,
    pub reason: String,
    /// The deletion of a container that took this one over, and begins it with itself.
    pub parent: Option<DeletionId>,
    /// It takes down what is in its target, too.
    pub cascade: bool,
    /// How many resources it takes down, counted at the request.
    pub resources: i64,
    pub fleet: StackFacts,
    pub revision: Revision,
    pub requested_at: Timestamp,
    /// When its grace ends. Until then nothing changes, and cancelling it is the restore.
    pub scheduled_for: Option<Timestamp>,
    pub done_at: Option<Timestamp>,
    /// How long its members are kept once it is done.
    pub retention: Duration,
    pub restorable_until: Option<Timestamp>,
    /// Whether purge protection was on when it was requested: nobody purges its members
    /// before `restorable_until`.
    pub purge_protected: bool,
    /// When it was purged, cancelled or restored. The record is kept for some time after.
    pub ended_at: Option<Timestamp>,
}

/// What only deletions of things of Fleet have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackFacts {
    /// Its markers tell agents to let go instead of removing.
    pub keep: bool,
    /// How many stacks it takes away, counted at the request.
    pub stacks: i64,
    /// Its content is erased, and its rows go when nothing needs them any more.
    pub erases: bool,
}

impl Deletion {
    /// What a reader of its target has to know while it is scheduled.
    pub fn notice(&self) -> Option<String> {
        let Self { id, requested_by, reason, .. } = self;
        let time = self.scheduled_for.filter(|_| self.state == DeletionState::Scheduled)?;
        Some(format!(
            "its deletion begins at {time}, asked for by {requested_by} ({reason}); `slipway deletion cancel {id}` keeps it"
        ))
    }

    /// As it is done: restorable for as long as its members are kept.
    #[must_use]
    pub fn done(self, now: Timestamp) -> Self {
        Self {
            state: DeletionState::Done,
            done_at: Some(now),
            restorable_until: Some(now.plus(self.retention)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_an_end_and_purging_has_no_way_back() {
        use DeletionState::*;
        for end in [Purged, Cancelled, Restored] {
            assert!(DeletionState::ALL.iter().all(|next| !end.may_become(*next)), "{end}");
            assert!(end.is_end());
        }
        let after_purging: Vec<_> =
            DeletionState::ALL.iter().filter(|next| Purging.may_become(**next)).collect();
        assert_eq!(after_purging, [&Purged]);
        assert!(!Running.may_become(Restored), "what is being taken down cannot come back");
    }
}
