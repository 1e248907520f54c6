//! What an agent is told to deploy. The answer is complete or there is none: to an agent an
//! absent stack means "remove it".

use slipway_core::commit::Commit;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::object::DeploymentObject;
use slipway_core::fleet::offer::{self, Delivery, OfferSnapshot};
use slipway_core::ids::{AgentId, DeletionId};

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::kind::StoredKind as _;
use crate::{Context, Error};

/// The newest object of every stack of the agent, and owed markers; the highest number first.
/// Holdings are committed before this answers. An agent for which nothing changed writes
/// nothing.
pub async fn target_state(
    context: &Context,
    caller: &Caller,
    id: AgentId,
) -> Result<Vec<DeploymentObject>, Error> {
    authorise(caller, Operation::FleetOffer)?;
    let store = &context.stores.fleet;
    let read = store.offer_read(id).await?;
    let seen = read.agent.clone().and_then(|agent| agent.seen_by(caller));
    if seen.is_none() {
        return Err(not_found(ErrorKind::AgentNotFound, AgentId::KIND, id));
    }
    let offered = match offer::unchanged(&read)? {
        Some(offered) => offered,
        None => {
            let mut offered = Vec::new();
            let mut rule = |snapshot: &OfferSnapshot| -> Result<Commit, Refusal> {
                let (objects, commit) = offer::decide(snapshot)?;
                offered = objects;
                Ok(commit)
            };
            store.decide_offer(id, &mut rule).await?;
            offered
        }
    };
    if offered.is_empty() {
        return Ok(Vec::new());
    }
    let objects = store.objects_fetch(&offered).await?;
    if objects.len() != offered.len() {
        let message = "an object was purged while the offer was made; ask again";
        return Err(Refusal::new(ErrorKind::Unavailable, message).into());
    }
    Ok(objects)
}

/// Which agents removed the stacks of a deletion, and which still owe it.
pub async fn deliveries(
    context: &Context,
    caller: &Caller,
    id: DeletionId,
    limit: u32,
) -> Result<Vec<Delivery>, Error> {
    authorise(caller, Operation::DeletionRead)?;
    let missing = || not_found(ErrorKind::DeletionNotFound, DeletionId::KIND, id);
    reach(context, caller, Owned::Deletion(id), missing).await?;
    Ok(context.stores.fleet.delivery_list(id, limit).await?)
}
