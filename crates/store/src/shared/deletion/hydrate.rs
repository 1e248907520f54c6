//! Hydrates deletions from rows, by the names of their columns.

use std::time::Duration;

use slipway_core::deletion::record::{Deletion, DeletionState, StackFacts};
use slipway_core::ids::{DeletionId, ProjectId, Revision};
use slipway_core::subject::{Subject, SubjectKind};

use uuid::Uuid;

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
        name: rows::get(row, "d_name")?,
        project_id: rows::get::<Option<Uuid>>(row, "d_project_id")?.map(ProjectId::new),
        parent: rows::get::<Option<Uuid>>(row, "d_parent_id")?.map(DeletionId::new),
        cascade: rows::get::<i32>(row, "d_cascade")? != 0,
        resources: rows::get(row, "d_resources")?,
        fleet: StackFacts {
            keep: rows::get::<i32>(row, "d_keep")? != 0,
            stacks: rows::get(row, "d_stacks")?,
            erases: rows::get::<i32>(row, "d_erases")? != 0,
        },
        revision: Revision(rows::get(row, "d_revision")?),
        requested_at: rows::time(row, "d_requested_at")?,
        scheduled_for: rows::time_or_null(row, "d_scheduled_for")?,
        retention: duration(rows::get(row, "d_retention")?),
        done_at: rows::time_or_null(row, "d_done_at")?,
        restorable_until: rows::time_or_null(row, "d_restorable_until")?,
        purge_protected: rows::get::<i32>(row, "d_purge_protected")? != 0,
        ended_at: rows::time_or_null(row, "d_ended_at")?,
    })
}

/// A stored number of microseconds.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
