//! What decisions write about deletions and leaks.

use crate::deletion::leak::LeakRecord;
use crate::deletion::record::Deletion;
use crate::subject::Subject;

/// One row. An update names the revision in the record.
#[derive(Debug, Clone, PartialEq)]
pub enum DeletionWrite {
    DeletionInsert(Deletion),
    DeletionUpdate(Deletion),
    /// Inserted once per id; a resolved leak that is seen again is reopened.
    LeakInsert(LeakRecord),
    /// The objects that a loop found for this subject are proven gone: resolves
    /// its open leak records now.
    LeaksResolve(Subject),
}
