//! The five lifecycle events. Their discriminators and payload fields are a
//! wire contract: they go to the outbox in the transaction of the change and
//! from there, at least once and under a stable message id, to subscribers.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::broker::attempt::ProvisionedResource;
use crate::broker::phase::Phase;
use crate::ids::{
    BlueprintVersionId, CloudCredentialId, EventId, ProjectId, ProvisionedResourceId, ResourceId,
    Revision,
};
use crate::time::Timestamp;

/// The closed set of discriminators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    Requested,
    Ready,
    Failed,
    Deleting,
    Deleted,
}

impl EventType {
    pub const ALL: [Self; 5] =
        [Self::Requested, Self::Ready, Self::Failed, Self::Deleting, Self::Deleted];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "broker.ProvisionedResourceRequested",
            Self::Ready => "broker.ProvisionedResourceReady",
            Self::Failed => "broker.ProvisionedResourceFailed",
            Self::Deleting => "broker.ProvisionedResourceDeleting",
            Self::Deleted => "broker.ProvisionedResourceDeleted",
        }
    }

    /// The event that announces a transition by observation into this phase.
    /// The other transitions are history, not events.
    pub const fn of_transition(into: Phase) -> Option<Self> {
        match into {
            Phase::Ready => Some(Self::Ready),
            Phase::Failed => Some(Self::Failed),
            Phase::Deleted => Some(Self::Deleted),
            Phase::Pending
            | Phase::Provisioning
            | Phase::Enrolling
            | Phase::Deregistering
            | Phase::Deprovisioning => None,
        }
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

/// One event, ready for the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: EventId,
    pub event_type: EventType,
    pub aggregate_id: ProvisionedResourceId,
    /// The revision that the write gives the aggregate; with the type it makes
    /// an event unique.
    pub revision: Revision,
    pub project_id: ProjectId,
    pub occurred_at: Timestamp,
    pub payload: Value,
}

impl Event {
    /// Announces a write; `aggregate` is as the write leaves it.
    pub fn announce(
        event_type: EventType,
        aggregate: &ProvisionedResource,
        revision: Revision,
        occurred_at: Timestamp,
    ) -> Self {
        let id = EventId::new(derive_id(
            occurred_at,
            &[
                event_type.as_str().as_bytes(),
                aggregate.id().as_uuid().as_bytes(),
                &revision.0.to_be_bytes(),
            ],
        ));
        let requested = event_type == EventType::Requested;
        let failed = event_type == EventType::Failed;
        let payload = Payload {
            event_id: id,
            occurred_at,
            provisioned_resource_id: aggregate.id(),
            project_id: aggregate.project_id(),
            xr_name: aggregate.xr_name(),
            resource_id: requested.then(|| aggregate.resource_id()),
            blueprint_version_id: requested.then(|| aggregate.blueprint_version_id()),
            cloud_credential_id: requested.then(|| aggregate.cloud_credential_id()),
            reason: failed.then(|| aggregate.failure_reason().unwrap_or_default()),
        };
        Self {
            id,
            event_type,
            aggregate_id: aggregate.id(),
            revision,
            project_id: aggregate.project_id(),
            occurred_at,
            payload: serde_json::to_value(payload).unwrap_or(Value::Null),
        }
    }
}

/// A UUIDv7 whose random part is a hash of what it identifies: time-ordered
/// like all our ids, and equal if the same thing is announced twice.
pub(crate) fn derive_id(at: Timestamp, parts: &[&[u8]]) -> Uuid {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    let millis = u64::try_from(at.as_micros() / 1_000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, mk_attempt};

    #[test]
    fn discriminators_are_the_published_ones() {
        let texts: Vec<_> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
        insta::assert_json_snapshot!(texts);
    }

    #[test]
    fn payloads_are_the_published_ones() {
        let attempt = mk_attempt(Phase::Failed).failed_because(Some("quota".to_owned()));
        let payloads: Vec<_> = EventType::ALL
            .iter()
            .map(|kind| Event::announce(*kind, &attempt, Revision(3), at(1_000)).payload)
            .collect();
        insta::assert_json_snapshot!(payloads);
    }

    #[test]
    fn the_same_announcement_has_the_same_id_and_another_has_another() {
        let attempt = mk_attempt(Phase::Ready);
        let announce =
            |kind, revision| Event::announce(kind, &attempt, Revision(revision), at(1_000)).id;
        assert_eq!(announce(EventType::Ready, 3), announce(EventType::Ready, 3));
        assert_ne!(announce(EventType::Ready, 3), announce(EventType::Ready, 4));
        assert_ne!(announce(EventType::Ready, 3), announce(EventType::Failed, 3));
        assert_eq!(announce(EventType::Ready, 3).as_uuid().get_version_num(), 7);
    }
}
