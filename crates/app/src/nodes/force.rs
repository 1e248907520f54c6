//! Force: stop waiting for a node.

use slipway_core::ids::ResourceId;
use slipway_core::nodes::drain;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::ResourceKey;
use crate::{Context, Error};

/// Deregisters the node of a resource in Deregistering.
pub async fn force_drain(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: &str,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::NodeForceDrain)?;
    reach::reach_resource(context, caller, id).await?;
    let reason = Reason::parse(reason).map_err(slipway_core::Refusal::from)?;
    context
        .stores
        .broker
        .decide(ResourceKey::Resource(id), &mut |snapshot| drain::force(snapshot, &reason, &actor))
        .await?;
    context.wakes.wake();
    Ok(())
}
