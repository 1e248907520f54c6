//! Requesting the deletion of a resource.

use slipway_core::broker::delete;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::deletion::door::Doored;
use slipway_core::ids::{DeletionId, ResourceId};

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::deletion::request::{DeleteOptions, input, wake};
use crate::{Context, Error};

/// Accepts the deletion, or returns the one that is under way. A deletion request is a
/// write, so a second one that expects the same revision is stale.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    let actor = authorise(caller, Operation::ResourceDelete)?;
    reach::reach_resource(context, caller, id).await?;
    let ask = options.ask_in_reach(context, caller).await?;
    let (mut deletion_id, mut refused) = (ask.deletion_id, None);
    let (mut transitioned, mut waits) = (Vec::new(), false);
    let mut rule = |snapshot: &Doored<ResourceSnapshot>| {
        let requested = delete::request(&snapshot.of, &snapshot.door, &ask, &actor)?;
        (deletion_id, refused) = (requested.deletion_id, requested.refused);
        transitioned = transitions(&requested.commit, Some(&snapshot.of));
        // A teardown is the work of the loop over resources; only grace is not.
        waits = transitioned.is_empty() && !requested.commit.is_empty();
        Ok(requested.commit)
    };
    let input = input(context, caller, &ask);
    context.stores.broker.decide_deletion(id, input, &mut rule).await?;
    if let Some(refused) = refused {
        return Err(refused.into());
    }
    tracing::info!(resource_id = %id, %deletion_id, "deletion accepted");
    context.meter.transitioned(&transitioned);
    if waits {
        wake(context).await;
    }
    context.wakes.wake();
    Ok(deletion_id)
}
