//! The events of workspaces.

use serde::Serialize;

use crate::event::{Event, EventType, event_family};
use crate::ids::{EventId, ProjectId, Revision, WorkspaceId};
use crate::time::Timestamp;
use crate::topology::workspace::Workspace;

event_family!("topology" {
    WORKSPACE_CREATED => "WorkspaceCreated",
    WORKSPACE_CHANGED => "WorkspaceChanged",
    WORKSPACE_PAUSED => "WorkspacePaused",
    WORKSPACE_RESUMED => "WorkspaceResumed",
    /// A group is to have more servers.
    GROUP_SCALED_UP => "GroupScaledUp",
    /// A server passed the gates, and its teardown began.
    GROUP_SCALED_DOWN => "GroupScaledDown",
    WORKSPACE_DELETED => "WorkspaceDeleted",
});

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload<'a> {
    #[serde(rename = "EventID")]
    event_id: EventId,
    occurred_at: Timestamp,
    #[serde(rename = "WorkspaceID")]
    workspace_id: WorkspaceId,
    name: &'a str,
    #[serde(rename = "ProjectID")]
    project_id: ProjectId,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<u32>,
}

/// The workspace as the write at this revision leaves it.
pub(crate) fn announce(
    event_type: EventType,
    workspace: &Workspace,
    revision: Revision,
    at: Timestamp,
) -> Event {
    scaled(event_type, workspace, revision, at, None)
}

/// The same of a group that is to have another number of servers.
pub(crate) fn scaled(
    event_type: EventType,
    workspace: &Workspace,
    revision: Revision,
    at: Timestamp,
    group: Option<(&str, u32)>,
) -> Event {
    let payload = |event_id| Payload {
        event_id,
        occurred_at: at,
        workspace_id: workspace.id,
        name: workspace.name.as_str(),
        project_id: workspace.project_id,
        group: group.map(|(name, _)| name),
        wanted: group.map(|(_, wanted)| wanted),
    };
    Event::new(event_type, workspace.id.into(), revision, Some(workspace.project_id), at, payload)
}
