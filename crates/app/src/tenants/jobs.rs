//! Jobs, as they are shown.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{TenantId, TenantJobId};
use slipway_core::tenants::job::{JobState, TenantJob};
use slipway_core::tenants::tenant::Tenant;

use super::port::JobFilter;
use super::provision;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::ports::store::Page;
use crate::{Context, Error};

/// In the metadata of a job that a person resumed: its target may be in use, so a step that fails
/// lets it wait again, and nothing is cleaned up before a person says so.
pub const KEEPS: &str = "keeps";

/// The jobs of a tenant, the oldest first.
pub async fn list(
    context: &Context,
    caller: &Caller,
    tenant: TenantId,
    state: Option<&str>,
    page: Page<TenantJobId>,
) -> Result<Vec<TenantJob>, Error> {
    let state = state.map(|text| JobState::parse_field("state", text)).transpose()?;
    let tenant = provision::fetch(context, caller, tenant, true).await?.id;
    Ok(context.stores.tenants.tenant_job_list(JobFilter { tenant, state }, page).await?)
}

/// A job with its tenant.
pub async fn fetch(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<(TenantJob, Tenant), Error> {
    authorise(caller, Operation::TenantRead)?;
    let missing = || {
        let message = format!("there is no job `{reference}`; `slipway tenant jobs` lists them");
        Error::from(Refusal::new(ErrorKind::TenantJobNotFound, message))
    };
    let Ok(id) = reference.parse::<TenantJobId>() else { return Err(missing()) };
    let job = context.stores.tenants.tenant_job_fetch(id).await?.ok_or_else(missing)?;
    match provision::fetch(context, caller, job.tenant_id, true).await {
        Ok(tenant) => Ok((job, tenant)),
        // A job out of reach is as unknown as one that does not exist.
        Err(error) if error.kind() == ErrorKind::TenantNotFound => Err(missing()),
        Err(error) => Err(error),
    }
}
