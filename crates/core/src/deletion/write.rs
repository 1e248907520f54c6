//! What decisions write about deletions and leaks.

use crate::commit::{Commit, Write};
use crate::deletion::approval::Approved;
use crate::deletion::brake::Brake;
use crate::deletion::event;
use crate::deletion::leak::LeakRecord;
use crate::deletion::plan::{Plan, Use};
use crate::deletion::protection::Protection;
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::settings::DeletionSetting;
use crate::ids::{DeletionId, ProjectId, Revision};
use crate::subject::{Subject, SubjectKind};
use crate::time::Timestamp;
use uuid::Uuid;

/// One row. An update names the revision in the record.
#[derive(Debug, Clone, PartialEq)]
pub enum DeletionWrite {
    DeletionInsert(Deletion),
    DeletionUpdate(Deletion),
    Mark(Mark),
    /// Marks the live resources of a project that no deletion has marked, and makes the
    /// scheduled deletions of the others children of this one.
    MarkMembers(Members),
    /// Takes the marks of a deletion back, from every row that carries its id, and leaves
    /// its children to themselves. Names what is deleted: that, and what may be in it,
    /// can carry the id.
    Unmark(DeletionId, SubjectKind),
    /// Gives new names, then takes the marks from every row that carries the id. The
    /// deletions of others, also of children that this one took over, stay as they are.
    Restore(Restored),
    /// Inserts or replaces the protection of its subject.
    Protect(Protection),
    Unprotect(Subject),
    /// Updates the brake of its key.
    Brake(Brake),
    PlanInsert(Box<Plan>),
    PlanUse(Use),
    PlanApprove(Approved),
    SettingInsert(DeletionSetting),
    SettingUpdate(DeletionSetting),
    /// By the id of its row.
    SettingRemove(Uuid),
    /// Inserted once per id; a resolved leak that is seen again is reopened.
    LeakInsert(LeakRecord),
    /// The objects that a loop found for this subject are proven gone: resolves
    /// its open leak records now.
    LeaksResolve(Subject),
}

/// Marks a row as leaving or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub subject: Subject,
    /// The revision of the row that was read.
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
}

/// The resources of a project, as members of its deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Members {
    pub project: ProjectId,
    pub deletion_id: DeletionId,
}

/// The members of a deletion as they come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub deletion_id: DeletionId,
    /// What was deleted: that, and what may be in it, can carry the id.
    pub kind: SubjectKind,
    pub renamed: Vec<(Subject, String)>,
}

/// Writes a new deletion and announces its first state.
pub(crate) fn begin(commit: &mut Commit, deletion: Deletion) {
    commit.events.push(event::announce(&deletion, deletion.revision, deletion.requested_at));
    commit.writes.push(Write::Deletion(DeletionWrite::DeletionInsert(deletion)));
}

/// Writes a deletion as it becomes, and announces its state if that is another one.
pub(crate) fn enter(commit: &mut Commit, before: &Deletion, mut after: Deletion, now: Timestamp) {
    if after.state != before.state {
        debug_assert!(before.state.may_become(after.state), "{before:?} → {}", after.state);
        after.ended_at = after.state.is_end().then_some(now);
        // Nothing is in its way any more.
        if after.state.is_end() || after.state == DeletionState::Purging {
            commit.writes.push(Write::BlockersReplace(after.id.into(), Vec::new()));
        }
        commit.events.push(event::announce(&after, before.revision.next(), now));
    }
    commit.writes.push(Write::Deletion(DeletionWrite::DeletionUpdate(after)));
}
