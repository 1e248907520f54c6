//! Deletions: one record for each, whatever is deleted. It says what, by whom,
//! why, with which members, and until when it can be restored.

use uuid::Uuid;

use serde::{Deserialize, Serialize};

use crate::closed_set::closed_set;
use crate::ids::{DeletionId, Revision};
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

/// One thing that a deletion takes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub kind: String,
    pub id: Uuid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    pub id: DeletionId,
    pub kind: String,
    pub target_id: Uuid,
    pub state: DeletionState,
    pub requested_by: String,
    pub reason: String,
    pub members: Vec<Member>,
    pub revision: Revision,
    pub requested_at: Timestamp,
    pub done_at: Option<Timestamp>,
    pub restorable_until: Option<Timestamp>,
}
