//! A person says that the machine of a resource is gone.

use slipway_core::ids::ResourceId;
use slipway_core::nodes::machine;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::ResourceKey;
use crate::{Context, Error};

/// Ends the machine of a resource of engine manual that is being deleted.
pub async fn confirm_gone(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: &str,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ResourceConfirmGone)?;
    reach::reach_resource(context, caller, id).await?;
    let reason = Reason::parse(reason).map_err(slipway_core::Refusal::from)?;
    let mut rule = |snapshot: &_| machine::confirm_gone(snapshot, &reason, &actor);
    context.stores.broker.decide(ResourceKey::Resource(id), &mut rule).await?;
    tracing::info!(resource_id = %id, "somebody said that a machine is gone");
    context.wakes.wake();
    Ok(())
}
