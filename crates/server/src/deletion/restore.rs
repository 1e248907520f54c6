//! Restoring what was deleted.

use axum::Json;
use slipway_app::deletion::restore::{self as usecase, RestoreOptions, Restored};
use slipway_core::deletion::restore::{Conflict, Renames, Returning};
use slipway_core::ids::DeletionId;
use slipway_wire::deletion::{Restore, RestoreConflict, RestoreDeletion, RestoredMember};

use super::deletions::shown;
use crate::request::{Body, Call, Id, Untagged};

/// Members and conflicts that one answer shows.
const SHOWN: usize = 100;

pub(super) async fn restore(
    call: Call,
    Id(id): Id<DeletionId>,
    Body(body): Body<RestoreDeletion>,
) -> Untagged<Restore> {
    let RestoreDeletion { reason, rename, rename_members, redeclare, dry_run } = body;
    let renames = Renames { target: rename, members: rename_members };
    let options = RestoreOptions { reason: reason.as_deref(), renames, redeclare, dry_run };
    let Restored { returning, conflicts } =
        usecase::restore(&call.context, &call.caller, id, options).await?;
    Ok(Json(Restore {
        deletion: shown(&call, id).await?,
        dry_run,
        restored_count: returning.len() as u64,
        restored: returning.into_iter().take(SHOWN).map(member).collect(),
        conflict_count: conflicts.len() as u64,
        conflicts: conflicts.into_iter().take(SHOWN).map(conflict).collect(),
    }))
}

fn member(found: Returning) -> RestoredMember {
    RestoredMember {
        kind: found.subject.kind.to_string(),
        name: found.name,
        id: found.subject.id.to_string(),
        attempt: found.attempt,
    }
}

fn conflict(found: Conflict) -> RestoreConflict {
    RestoreConflict {
        code: found.code.to_owned(),
        kind: found.kind.to_string(),
        id: found.id.to_string(),
        name: found.name,
        message: found.message,
    }
}
