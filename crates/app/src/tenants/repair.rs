//! Repairs: what a person found out about a migration goes into the ledger of one tenant, or
//! of all whose migration failed.

use slipway_core::error::Refusal;
use slipway_core::ids::TenantId;
use slipway_core::precondition::Expected;
use slipway_core::tenants::job::JobState;
use slipway_core::tenants::task::{self, Repair};
use slipway_core::tenants::tenant::Tenant;

use super::port::{TenantFilter, TenantKey};
use super::provision::{MANY, fetch, list};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::ports::store::{PAGE_MAX, Page};
use crate::{Context, Error};

/// Makes the repair of one tenant due. One that is not carried out yet is replaced.
pub async fn one(
    context: &Context,
    caller: &Caller,
    id: TenantId,
    repair: &Repair,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::TenantRepair)?;
    fetch(context, caller, id, false).await?;
    let mut rule = |snapshot: &_| task::repair(snapshot, repair, expected, &actor);
    context.stores.kind::<Tenant>().decide(&TenantKey::Existing(id), &mut rule).await?;
    context.wakes.wake_tenants();
    Ok(())
}

/// What a repair of many did.
#[derive(Debug, Clone, Default)]
pub struct RepairedMany {
    pub repaired: Vec<Tenant>,
    /// Those that changed meanwhile, and why they are not repaired.
    pub refused: Vec<(Tenant, Refusal)>,
    /// There are more; ask again.
    pub has_more: bool,
}

/// The same for every tenant of a profile whose migration failed, also if no roll-out wants it any
/// more. A tenant that is closed has the error of another task.
pub async fn many(
    context: &Context,
    caller: &Caller,
    filter: &TenantFilter,
    repair: &Repair,
) -> Result<RepairedMany, Error> {
    authorise(caller, Operation::TenantRepair)?;
    if filter.profile.is_none() {
        let problem = "is required: a version means something for one profile only";
        return Err(Refusal::invalid("profile", problem).into());
    }
    let ready =
        TenantFilter { state: Some(JobState::Ready), show_deleted: false, ..filter.clone() };
    let mut done = RepairedMany::default();
    let mut page = Page { after: None, limit: PAGE_MAX };
    loop {
        let found = list(context, caller, &ready, page).await?;
        for tenant in found.items {
            if tenant.closed || tenant.last_error.is_none() {
                continue;
            }
            if done.repaired.len() >= MANY as usize {
                done.has_more = true;
                return Ok(done);
            }
            match one(context, caller, tenant.id, repair, Expected::Any).await {
                Ok(()) => done.repaired.push(tenant),
                Err(error) if error.internal.is_none() => {
                    done.refused.push((tenant, error.refusal));
                }
                Err(error) => return Err(error),
            }
        }
        let Some(next) = found.next else { return Ok(done) };
        page.after = Some(TenantId::new(next));
    }
}
