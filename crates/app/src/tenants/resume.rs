//! A person decided about a tenant that waits for one.

use slipway_core::error::Refusal;
use slipway_core::ids::TenantId;
use slipway_core::precondition::Expected;
use slipway_core::tenants::tenant::Tenant;
use slipway_core::tenants::waiting::{self, Resume};
use slipway_core::text::Reason;

use super::port::TenantKey;
use super::provision::fetch;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::{Context, Error};

pub async fn resume(
    context: &Context,
    caller: &Caller,
    id: TenantId,
    reason: &str,
    clean_up: bool,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::TenantResume)?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    let resume = Resume { reason, clean_up };
    fetch(context, caller, id, true).await?;
    let mut rule = |snapshot: &_| waiting::resume(snapshot, &resume, expected, &actor);
    context.stores.kind::<Tenant>().decide(&TenantKey::Waiting(id), &mut rule).await?;
    context.wakes.wake_tenants();
    Ok(())
}
