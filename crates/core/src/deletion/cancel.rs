//! Cancelling a deletion before its grace ends. Nothing was touched, so it leaves
//! everything as it was.

use crate::access::audit::Actor;
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::door::entry;
use crate::deletion::record::{Deletion, DeletionState};
use crate::deletion::request::DeletionSnapshot;
use crate::deletion::write::enter;
use crate::error::{ErrorKind, Refusal};
use crate::ids::WorkspaceId;
use crate::subject::SubjectKind;
use crate::text::Reason;
use crate::topology::TopologyWrite;

pub fn cancel(
    snapshot: &DeletionSnapshot,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let DeletionSnapshot { now, deletion, .. } = snapshot;
    if deletion.target.kind == SubjectKind::Workspace && deletion.state == DeletionState::Running {
        return Ok(stopped(snapshot, reason, actor));
    }
    let remedy = match deletion.state {
        DeletionState::Scheduled => "",
        // Repeated, it changes nothing.
        DeletionState::Cancelled => return Ok(Commit::default()),
        DeletionState::Running => {
            "its grace is over, and what is being taken down cannot be brought back; wait until it is done, then restore it"
        }
        DeletionState::Done => "it is done; restore it with `slipway deletion restore`",
        DeletionState::Restored => "it was restored",
        DeletionState::Purging | DeletionState::Purged => {
            "it is purged, and nothing can be brought back"
        }
    };
    if deletion.state != DeletionState::Scheduled {
        let message = format!(
            "the deletion of {} `{}` cannot be cancelled: {remedy}",
            deletion.target.kind, deletion.name
        );
        return Err(Refusal::new(ErrorKind::NotCancellable, message));
    }
    let mut commit = Commit {
        writes: vec![Write::Deletion(DeletionWrite::Unmark(deletion.id, deletion.target.kind))],
        audit: vec![entry("deletion.cancel", deletion, actor, *now).because(reason.as_str())],
        ..Commit::default()
    };
    let after = Deletion { state: DeletionState::Cancelled, ..deletion.clone() };
    enter(&mut commit, deletion, after, *now);
    Ok(commit)
}

/// Ends the teardown of a workspace before the next server goes. The workspace stays, paused, so
/// that nothing is made anew before somebody asks for that. Servers whose teardown began go on
/// their way.
fn stopped(snapshot: &DeletionSnapshot, reason: &Reason, actor: &Actor) -> Commit {
    let DeletionSnapshot { now, deletion, .. } = snapshot;
    let workspace = WorkspaceId::new(deletion.target.id);
    let mut commit = Commit {
        writes: vec![
            Write::Deletion(DeletionWrite::Unmark(deletion.id, deletion.target.kind)),
            TopologyWrite::Suspend(workspace).into(),
        ],
        audit: vec![entry("deletion.cancel", deletion, actor, *now).because(reason.as_str())],
        ..Commit::default()
    };
    let after = Deletion { state: DeletionState::Cancelled, ..deletion.clone() };
    enter(&mut commit, deletion, after, *now);
    commit
}
