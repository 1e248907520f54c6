//! The lifecycle events of an attempt, and their payloads.

use serde::Serialize;

use crate::broker::attempt::ProvisionedResource;
use crate::broker::phase::Phase;
use crate::event::{Event, EventType, event_family};
use crate::ids::{
    BlueprintVersionId, CloudCredentialId, EventId, ProjectId, ProvisionedResourceId, ResourceId,
    Revision,
};
use crate::time::Timestamp;

event_family!("broker" {
    REQUESTED => "ProvisionedResourceRequested",
    UPDATED => "ProvisionedResourceUpdated",
    READY => "ProvisionedResourceReady",
    FAILED => "ProvisionedResourceFailed",
    DELETING => "ProvisionedResourceDeleting",
    DELETED => "ProvisionedResourceDeleted",
});

/// The event that announces a transition by observation into this phase. The
/// other transitions are history, not events.
pub const fn of_transition(into: Phase) -> Option<EventType> {
    match into {
        Phase::Ready => Some(READY),
        Phase::Failed => Some(FAILED),
        Phase::Deleted => Some(DELETED),
        Phase::Pending
        | Phase::Provisioning
        | Phase::Enrolling
        | Phase::Deregistering
        | Phase::Deprovisioning => None,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload<'a> {
    #[serde(rename = "EventID")]
    event_id: EventId,
    occurred_at: Timestamp,
    #[serde(rename = "ProvisionedResourceID")]
    provisioned_resource_id: ProvisionedResourceId,
    #[serde(rename = "ProjectID")]
    project_id: ProjectId,
    #[serde(rename = "XRName")]
    xr_name: &'a str,
    #[serde(rename = "ResourceID", skip_serializing_if = "Option::is_none")]
    resource_id: Option<ResourceId>,
    #[serde(rename = "BlueprintVersionID", skip_serializing_if = "Option::is_none")]
    blueprint_version_id: Option<BlueprintVersionId>,
    #[serde(rename = "CloudCredentialID", skip_serializing_if = "Option::is_none")]
    cloud_credential_id: Option<CloudCredentialId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Announces a write; `attempt` is as the write leaves it.
pub fn announce(
    event_type: EventType,
    attempt: &ProvisionedResource,
    revision: Revision,
    occurred_at: Timestamp,
) -> Event {
    let (requested, failed) = (event_type == REQUESTED, event_type == FAILED);
    let project_id = attempt.project_id();
    let payload = |event_id| Payload {
        event_id,
        occurred_at,
        provisioned_resource_id: attempt.id(),
        project_id,
        xr_name: attempt.xr_name(),
        resource_id: requested.then(|| attempt.resource_id()),
        blueprint_version_id: requested.then(|| attempt.blueprint_version_id()),
        cloud_credential_id: requested.then(|| attempt.cloud_credential_id()),
        reason: failed.then(|| attempt.failure_reason().unwrap_or_default()),
    };
    let subject = attempt.id().into();
    let event = Event::new(event_type, subject, revision, Some(project_id), occurred_at, payload);
    Event { abandoned: attempt.abandoned_at().is_some(), ..event }
}
