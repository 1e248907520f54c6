//! The events of a roll-out: one for each state that it enters.

use serde::Serialize;

use crate::event::{Event, EventType, event_family};
use crate::ids::{EventId, ProjectId, Revision, RolloutId};
use crate::rollouts::record::{Purpose, Rollout, RolloutState};
use crate::subject::SubjectKind;
use crate::time::Timestamp;
use uuid::Uuid;

event_family!("rollouts" {
    STARTED => "Started",
    PAUSED => "Paused",
    RESUMED => "Resumed",
    ROLLING_BACK => "RollingBack",
    DONE => "Done",
    ABORTED => "Aborted",
    ROLLED_BACK => "RolledBack",
});

const fn of_state(state: RolloutState) -> EventType {
    match state {
        RolloutState::Running => RESUMED,
        RolloutState::Paused => PAUSED,
        RolloutState::RollingBack => ROLLING_BACK,
        RolloutState::Done => DONE,
        RolloutState::Aborted => ABORTED,
        RolloutState::RolledBack => ROLLED_BACK,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload<'a> {
    #[serde(rename = "EventID")]
    event_id: EventId,
    occurred_at: Timestamp,
    #[serde(rename = "RolloutID")]
    rollout_id: RolloutId,
    purpose: Purpose,
    kind: SubjectKind,
    #[serde(rename = "SubjectID")]
    subject_id: Uuid,
    name: &'a str,
    #[serde(rename = "ProjectID", skip_serializing_if = "Option::is_none")]
    project_id: Option<ProjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// Announces the state that a write gives the roll-out.
pub(crate) fn announce(rollout: &Rollout, revision: Revision, occurred_at: Timestamp) -> Event {
    let first = revision == Revision::FIRST;
    let event_type = if first { STARTED } else { of_state(rollout.state) };
    let payload = |event_id| Payload {
        event_id,
        occurred_at,
        rollout_id: rollout.id,
        purpose: rollout.purpose,
        kind: rollout.subject.kind,
        subject_id: rollout.subject.id,
        name: &rollout.name,
        project_id: rollout.project_id,
        message: rollout.message.as_deref(),
    };
    Event::new(event_type, rollout.id.into(), revision, rollout.project_id, occurred_at, payload)
}
