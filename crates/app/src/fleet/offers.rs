//! What an agent is told to deploy. The answer is complete or there is none: to an agent an
//! absent stack means "remove it".

use slipway_core::commit::Commit;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::object::DeploymentObject;
use slipway_core::fleet::offer::{self, Delivery, OfferSnapshot};
use slipway_core::ids::{AgentId, DeletionId, DeploymentObjectId, StackId};

use super::renderings;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::kind::StoredKind as _;
use crate::{Context, Error};

/// What an agent is offered, as ids: its holdings are committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    ids: Vec<DeploymentObjectId>,
}

impl Offer {
    /// Changes exactly when the offer does.
    pub fn tag(&self) -> String {
        offer::tag(&self.ids)
    }

    /// The objects with their contents, the highest number first.
    pub async fn objects(&self, context: &Context) -> Result<Vec<DeploymentObject>, Error> {
        if self.ids.is_empty() {
            return Ok(Vec::new());
        }
        let objects = context.stores.fleet.objects_fetch(&self.ids).await?;
        if objects.len() != self.ids.len() || objects.iter().any(|one| one.erased_at.is_some()) {
            let message = "an object was purged while the offer was made; ask again";
            return Err(Refusal::new(ErrorKind::Unavailable, message).into());
        }
        Ok(objects)
    }
}

/// The newest object of every stack of the agent, and owed markers. Holdings are committed
/// before this answers. An agent for which nothing changed costs one statement and writes
/// nothing; the contents are another one, see [`Offer::objects`]. Where the agent holds anything
/// but the newest content of each of its stacks, a second one reads the facts of each.
pub async fn offer(context: &Context, caller: &Caller, id: AgentId) -> Result<Offer, Error> {
    authorise(caller, Operation::FleetOffer)?;
    let store = &context.stores.fleet;
    let held = store.offer_held(id).await?;
    let seen = held.agent.clone().and_then(|agent| agent.seen_by(caller));
    let Some(agent) = seen else {
        return Err(not_found(ErrorKind::AgentNotFound, AgentId::KIND, id));
    };
    if let Some(ids) = held.unchanged() {
        return Ok(Offer { ids });
    }
    let mut read = store.offer_read(id).await?;
    let missing = read.missing();
    if !missing.is_empty() {
        renderings::make(context, &agent, read.tags, &missing).await?;
        read = store.offer_read(id).await?;
    }
    let ids = match offer::unchanged(&read)? {
        Some(ids) => ids,
        None => {
            let mut ids = Vec::new();
            let mut rule = |snapshot: &OfferSnapshot| -> Result<Commit, Refusal> {
                let (objects, commit) = offer::decide(snapshot)?;
                ids = objects;
                Ok(commit)
            };
            store.decide_offer(id, &mut rule).await?;
            ids
        }
    };
    Ok(Offer { ids })
}

/// The same with the contents, the highest number first.
pub async fn target_state(
    context: &Context,
    caller: &Caller,
    id: AgentId,
) -> Result<Vec<DeploymentObject>, Error> {
    offer(context, caller, id).await?.objects(context).await
}

/// Refuses a stack that an agent has nothing to do with.
pub(crate) async fn known(context: &Context, agent: AgentId, stack: StackId) -> Result<(), Error> {
    let candidates = context.stores.fleet.offer_read(agent).await?.candidates;
    match candidates.iter().any(|one| one.stack_id == stack && one.is_known()) {
        true => Ok(()),
        false => Err(not_found(ErrorKind::StackNotFound, StackId::KIND, stack)),
    }
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
