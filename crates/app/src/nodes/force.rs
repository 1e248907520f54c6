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
        .decide(ResourceKey::Resource(id), &mut |snapshot| {
            let first = snapshot.torn_down();
            let forced = drain::force(first, &reason, &actor);
            // If both of two attempts are taken down, the second one may be waited for.
            let second = [Some(snapshot), snapshot.other.as_deref()].into_iter().flatten();
            let mut second = second.filter(|one| one.attempt.id() != first.attempt.id());
            forced.or_else(|refusal| match second.next() {
                Some(second) => drain::force(second, &reason, &actor).map_err(|_| refusal),
                None => Err(refusal),
            })
        })
        .await?;
    context.wakes.wake();
    Ok(())
}
