//! Hydrates deletions from rows, by the names of their columns.

use slipway_core::deletion::record::{Deletion, DeletionState};
use slipway_core::ids::{DeletionId, Revision};
use slipway_core::subject::{Subject, SubjectKind};

use super::{Row, rows};
use crate::fault::Fault;

pub(crate) fn deletion(row: &Row) -> Result<Deletion, Fault> {
    Ok(Deletion {
        id: DeletionId::new(rows::get(row, "d_id")?),
        target: Subject {
            kind: rows::member(row, "d_kind", SubjectKind::parse)?,
            id: rows::get(row, "d_target_id")?,
        },
        state: rows::member(row, "d_state", DeletionState::parse)?,
        requested_by: rows::get(row, "d_requested_by")?,
        reason: rows::get(row, "d_reason")?,
        members: rows::json(row, "d_members")?,
        revision: Revision(rows::get(row, "d_revision")?),
        requested_at: rows::time(row, "d_requested_at")?,
        done_at: rows::time_or_null(row, "d_done_at")?,
        restorable_until: rows::time_or_null(row, "d_restorable_until")?,
    })
}
