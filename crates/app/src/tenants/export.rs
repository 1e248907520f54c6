//! A copy of a tenant's data.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::TenantId;
use slipway_core::precondition::Expected;
use slipway_core::tenants::export;
use slipway_core::tenants::tenant::Tenant;

use super::port::TenantKey;
use super::provision::{fetch, profile_of};
use super::targets::TenantExport;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::{Context, Error};

/// Begins a copy of the data as it is now, also of a tenant that is closed. The audit has it
/// before the first piece is read.
pub async fn export(
    context: &Context,
    caller: &Caller,
    id: TenantId,
    expected: Expected,
) -> Result<Box<dyn TenantExport>, Error> {
    let actor = authorise(caller, Operation::TenantExport)?;
    let tenant = fetch(context, caller, id, true).await?;
    let copy = context.entropy.uuid();
    let mut rule = |snapshot: &_| export::export(snapshot, copy, expected, &actor);
    context.stores.kind::<Tenant>().decide(&TenantKey::Kept(id), &mut rule).await?;
    let profile = profile_of(context, &tenant).await?;
    context.tenants.export(&profile, &tenant).await.map_err(|error| {
        Refusal::new(ErrorKind::Unavailable, format!("the target cannot be copied: {error}")).into()
    })
}
