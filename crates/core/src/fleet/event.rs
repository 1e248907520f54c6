//! The events of Fleet: a named thing came, went or came back, and a stack got an object. An
//! event names an object and never has its content.

use serde::Serialize;
use uuid::Uuid;

use crate::event::{Event, EventType, event_family};
use crate::fleet::object::DeploymentObject;
use crate::ids::{DeletionId, DeploymentObjectId, EventId, ProjectId, Revision};
use crate::subject::{Subject, SubjectKind};
use crate::time::Timestamp;

event_family!("fleet" {
    GENERATOR_CREATED => "GeneratorCreated",
    GENERATOR_DELETED => "GeneratorDeleted",
    GENERATOR_RESTORED => "GeneratorRestored",
    STACK_CREATED => "StackCreated",
    STACK_DELETED => "StackDeleted",
    STACK_RESTORED => "StackRestored",
    TEMPLATE_CREATED => "TemplateCreated",
    TEMPLATE_DELETED => "TemplateDeleted",
    TEMPLATE_RESTORED => "TemplateRestored",
    AGENT_CREATED => "AgentCreated",
    AGENT_DELETED => "AgentDeleted",
    AGENT_RESTORED => "AgentRestored",
    /// Content or a marker that somebody submitted.
    OBJECT_SUBMITTED => "ObjectSubmitted",
    OBJECT_WITHDRAWN => "ObjectWithdrawn",
});

/// What a named thing is announced to have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    Created,
    Deleted,
    Restored,
}

/// `None` for a kind of another room.
const fn of(kind: SubjectKind, what: Happened) -> Option<EventType> {
    Some(match (kind, what) {
        (SubjectKind::Generator, Happened::Created) => GENERATOR_CREATED,
        (SubjectKind::Generator, Happened::Deleted) => GENERATOR_DELETED,
        (SubjectKind::Generator, Happened::Restored) => GENERATOR_RESTORED,
        (SubjectKind::Stack, Happened::Created) => STACK_CREATED,
        (SubjectKind::Stack, Happened::Deleted) => STACK_DELETED,
        (SubjectKind::Stack, Happened::Restored) => STACK_RESTORED,
        (SubjectKind::Template, Happened::Created) => TEMPLATE_CREATED,
        (SubjectKind::Template, Happened::Deleted) => TEMPLATE_DELETED,
        (SubjectKind::Template, Happened::Restored) => TEMPLATE_RESTORED,
        (SubjectKind::Agent, Happened::Created) => AGENT_CREATED,
        (SubjectKind::Agent, Happened::Deleted) => AGENT_DELETED,
        (SubjectKind::Agent, Happened::Restored) => AGENT_RESTORED,
        _ => return None,
    })
}

/// A named thing at the revision that a write gives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Announced<'a> {
    pub(crate) subject: Subject,
    pub(crate) name: &'a str,
    pub(crate) project_id: ProjectId,
    pub(crate) revision: Revision,
    pub(crate) at: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload<'a> {
    #[serde(rename = "EventID")]
    event_id: EventId,
    occurred_at: Timestamp,
    kind: SubjectKind,
    #[serde(rename = "ID")]
    id: Uuid,
    name: &'a str,
    #[serde(rename = "ProjectID")]
    project_id: ProjectId,
    #[serde(rename = "DeletionID", skip_serializing_if = "Option::is_none")]
    deletion_id: Option<DeletionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ObjectPayload<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ObjectPayload<'a> {
    #[serde(rename = "ObjectID")]
    object_id: DeploymentObjectId,
    sequence: i64,
    checksum: &'a str,
    is_deletion_marker: bool,
}

impl Announced<'_> {
    pub(crate) fn happened(self, what: Happened, deletion_id: Option<DeletionId>) -> Option<Event> {
        let event_type = of(self.subject.kind, what)?;
        Some(self.event(event_type, deletion_id, None))
    }

    /// About an object of this stack.
    pub(crate) fn object(self, event_type: EventType, object: &DeploymentObject) -> Event {
        let payload = ObjectPayload {
            object_id: object.id,
            sequence: object.sequence,
            checksum: &object.checksum,
            is_deletion_marker: object.is_marker,
        };
        self.event(event_type, None, Some(payload))
    }

    fn event(
        self,
        event_type: EventType,
        deletion_id: Option<DeletionId>,
        object: Option<ObjectPayload<'_>>,
    ) -> Event {
        let Self { subject, name, project_id, revision, at } = self;
        let payload = |event_id| Payload {
            event_id,
            occurred_at: at,
            kind: subject.kind,
            id: subject.id,
            name,
            project_id,
            deletion_id,
            object,
        };
        Event::new(event_type, subject, revision, Some(project_id), at, payload)
    }
}
