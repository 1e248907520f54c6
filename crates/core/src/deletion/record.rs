//! Deletions: one record for each, whatever is deleted. It says what, by whom,
//! why, with which members, and until when it can be restored.

use crate::closed_set::closed_set;
use crate::ids::{DeletionId, Revision};
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    pub id: DeletionId,
    pub target: Subject,
    pub state: DeletionState,
    pub requested_by: String,
    pub reason: String,
    /// Everything that goes with it, the target too.
    pub members: Vec<Subject>,
    pub revision: Revision,
    pub requested_at: Timestamp,
    pub done_at: Option<Timestamp>,
    pub restorable_until: Option<Timestamp>,
}
