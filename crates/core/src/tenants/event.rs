//! The events of tenants. An event names a state and never has the text of an error, which
//! comes from outside.

use serde::Serialize;

use crate::event::{Event, EventType, event_family};
use crate::ids::{DeletionId, EventId, ProjectId, Revision, TenantId, TenantJobId};
use crate::tenants::job::JobState;
use crate::tenants::tenant::Tenant;
use crate::time::Timestamp;

event_family!("tenants" {
    TENANT_CREATED => "TenantCreated",
    TENANT_DELETED => "TenantDeleted",
    /// A new job for a tenant whose job failed.
    JOB_RETRIED => "JobRetried",
    JOB_ADVANCED => "JobAdvanced",
    /// A step failed for good; what the job made is removed.
    JOB_CLEANUP => "JobCleanup",
    JOB_FAILED => "JobFailed",
    TENANT_READY => "TenantReady",
    TENANT_CLOSED => "TenantClosed",
    TENANT_REOPENED => "TenantReopened",
    TENANT_DESTROYED => "TenantDestroyed",
    TENANT_MIGRATED => "TenantMigrated",
    TENANT_REPAIRED => "TenantRepaired",
    /// A person decided about one that waited for that.
    TENANT_RESUMED => "TenantResumed",
});

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload<'a> {
    #[serde(rename = "EventID")]
    event_id: EventId,
    occurred_at: Timestamp,
    #[serde(rename = "TenantID")]
    tenant_id: TenantId,
    name: &'a str,
    #[serde(rename = "ProjectID")]
    project_id: ProjectId,
    #[serde(rename = "JobID")]
    job_id: TenantJobId,
    state: JobState,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(rename = "DeletionID", skip_serializing_if = "Option::is_none")]
    deletion_id: Option<DeletionId>,
}

/// The tenant as the write at this revision leaves it.
pub(crate) fn announce(
    event_type: EventType,
    tenant: &Tenant,
    revision: Revision,
    at: Timestamp,
    deletion_id: Option<DeletionId>,
) -> Event {
    let payload = |event_id| Payload {
        event_id,
        occurred_at: at,
        tenant_id: tenant.id,
        name: tenant.name.as_str(),
        project_id: tenant.project_id,
        job_id: tenant.job_id,
        state: tenant.state,
        version: tenant.version.as_deref(),
        deletion_id,
    };
    Event::new(event_type, tenant.id.into(), revision, Some(tenant.project_id), at, payload)
}
