//! Removals that an agent refuses until somebody confirms them.

use slipway_core::error::ErrorKind;
use slipway_core::fleet::prune::{self, PruneRefusal, PruneSnapshot, RefusedPrune};
use slipway_core::ids::AgentId;

use super::agents;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach::not_found;
use crate::{Context, Error};

/// An agent says what it would remove and did not.
pub async fn refuse(
    context: &Context,
    caller: &Caller,
    id: AgentId,
    refusal: &PruneRefusal,
) -> Result<(), Error> {
    authorise(caller, Operation::FleetReport)?;
    agents::fetch(context, caller, id, false).await?;
    if context.stores.fleet.prune_refuse(id, refusal).await? {
        return Ok(());
    }
    Err(not_found(ErrorKind::AgentNotFound, AgentId::KIND, id))
}

/// What the agent refused last, confirmed or not.
pub async fn refused(
    context: &Context,
    caller: &Caller,
    id: AgentId,
) -> Result<Option<RefusedPrune>, Error> {
    agents::fetch(context, caller, id, false).await?;
    Ok(context.stores.fleet.prune_fetch(id).await?)
}

/// Agrees to the removal that the agent refused last; `digest` if it must be this one.
pub async fn confirm(
    context: &Context,
    caller: &Caller,
    id: AgentId,
    digest: Option<&str>,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::FleetPruneConfirm)?;
    agents::fetch(context, caller, id, false).await?;
    let mut rule = |snapshot: &PruneSnapshot| prune::confirm(snapshot, digest, &actor);
    Ok(context.stores.fleet.decide_prune(id, &mut rule).await?)
}
