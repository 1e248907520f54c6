//! The events of a deletion: one for each state that it enters.

use serde::Serialize;

use crate::deletion::record::{Deletion, DeletionState};
use crate::event::{Event, EventType, event_family};
use crate::ids::{DeletionId, EventId, ProjectId, Revision};
use crate::subject::SubjectKind;
use crate::time::Timestamp;
use uuid::Uuid;

event_family!("deletion" {
    SCHEDULED => "Scheduled",
    STARTED => "Started",
    DONE => "Done",
    PURGING => "Purging",
    PURGED => "Purged",
    CANCELLED => "Cancelled",
    RESTORED => "Restored",
    /// An admin let a deletion pass the brake and the approval.
    BREAK_GLASS => "BreakGlass",
    /// An admin lifted the protection of one thing for a while.
    PROTECTION_LIFTED => "ProtectionLifted",
    BRAKE_TRIPPED => "BrakeTripped",
    BRAKE_RELEASED => "BrakeReleased",
});

const fn of_state(state: DeletionState) -> EventType {
    match state {
        DeletionState::Scheduled => SCHEDULED,
        DeletionState::Running => STARTED,
        DeletionState::Done => DONE,
        DeletionState::Purging => PURGING,
        DeletionState::Purged => PURGED,
        DeletionState::Cancelled => CANCELLED,
        DeletionState::Restored => RESTORED,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload<'a> {
    #[serde(rename = "EventID")]
    event_id: EventId,
    occurred_at: Timestamp,
    #[serde(rename = "DeletionID")]
    deletion_id: DeletionId,
    kind: SubjectKind,
    #[serde(rename = "TargetID")]
    target_id: Uuid,
    name: &'a str,
    #[serde(rename = "ProjectID", skip_serializing_if = "Option::is_none")]
    project_id: Option<ProjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_for: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restorable_until: Option<Timestamp>,
}

/// Announces the state that a write gives the deletion.
pub(crate) fn announce(deletion: &Deletion, revision: Revision, occurred_at: Timestamp) -> Event {
    of(of_state(deletion.state), deletion, revision, occurred_at)
}

/// Announces something about a deletion.
pub(crate) fn of(
    event_type: EventType,
    deletion: &Deletion,
    revision: Revision,
    occurred_at: Timestamp,
) -> Event {
    let Deletion { project_id, scheduled_for, restorable_until, .. } = *deletion;
    let payload = |event_id| Payload {
        event_id,
        occurred_at,
        deletion_id: deletion.id,
        kind: deletion.target.kind,
        target_id: deletion.target.id,
        name: &deletion.name,
        project_id,
        scheduled_for: scheduled_for.filter(|_| deletion.state == DeletionState::Scheduled),
        restorable_until,
    };
    Event::new(event_type, deletion.id.into(), revision, project_id, occurred_at, payload)
}
