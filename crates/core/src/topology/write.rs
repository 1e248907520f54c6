//! What decisions write about workspaces.

use crate::commit::Write;
use crate::ids::{GroupId, WorkspaceId};
use crate::topology::group::Group;
use crate::topology::workspace::Workspace;

/// Rows of workspaces. An update names the revision in the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum TopologyWrite {
    WorkspaceInsert(Workspace),
    WorkspaceUpdate(Workspace),
    /// Pauses a workspace, whatever its revision: its teardown was cancelled in the same commit.
    Suspend(WorkspaceId),
    GroupInsert(Group),
    GroupUpdate(Group),
    /// Only how many servers it wants, and which are marked.
    GroupScale(Group),
    /// Of a group that was dropped and has no servers any more.
    GroupRemove(GroupId),
}

impl From<TopologyWrite> for Write {
    fn from(write: TopologyWrite) -> Self {
        Self::Topology(Box::new(write))
    }
}
