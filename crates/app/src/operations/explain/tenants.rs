//! What explanations of tenants and their jobs read.

use slipway_core::error::Refusal;
use slipway_core::ids::TenantId;
use slipway_core::operations::explain::{self, TenantFacts};
use slipway_core::operations::explanation::{ExplainedKind, Explanation};
use slipway_core::operations::reference;
use slipway_core::subject::SubjectKind;
use slipway_core::tenants::job::TenantJob;
use slipway_core::tenants::tenant::Tenant;

use crate::access::authorise::Caller;
use crate::tenants::{jobs, provision};
use crate::{Context, Error};

pub(super) async fn tenant(
    context: &Context,
    caller: &Caller,
    text: &str,
) -> Result<Explanation, Error> {
    let found = crate::access::reference::find(context, caller, SubjectKind::Tenant, text).await?;
    let missing = || -> Refusal { reference::missing(ExplainedKind::Tenant, text) };
    let id = TenantId::new(found.ok_or_else(missing)?);
    let tenant = provision::fetch(context, caller, id, true).await?;
    let job = context.stores.tenants.tenant_job_fetch(tenant.job_id).await?;
    with_facts(context, &tenant, job.as_ref(), explain::tenant).await
}

pub(super) async fn job(
    context: &Context,
    caller: &Caller,
    text: &str,
) -> Result<Explanation, Error> {
    let (job, tenant) = jobs::fetch(context, caller, text).await?;
    with_facts(context, &tenant, Some(&job), |facts| explain::job(facts, &job)).await
}

async fn with_facts(
    context: &Context,
    tenant: &Tenant,
    job: Option<&TenantJob>,
    explained: impl FnOnce(&TenantFacts<'_>) -> Explanation,
) -> Result<Explanation, Error> {
    let (project, profile) = (tenant.project_id.as_uuid(), tenant.profile_id.as_uuid());
    let names = context.stores.access.names(&[project, profile]).await?;
    let name = |id| names.get(id).map_or("?", String::as_str);
    let control = context.stores.operations.control_fetch().await?;
    Ok(explained(&TenantFacts {
        now: control.now,
        mode: control.mode(),
        project: name(&project),
        profile: name(&profile),
        tenant,
        job,
    }))
}
