//! Retrying a failed attempt.

use slipway_core::broker::retry;
use slipway_core::broker::transition::transitions;
use slipway_core::ids::{DeletionId, ResourceId};
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::ResourceKey;
use crate::{Context, Error};

/// Takes the attempt down in order; then the next attempt follows.
pub async fn retry(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: &str,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ResourceRetry)?;
    reach::reach_resource(context, caller, id).await?;
    let reason = Reason::parse(reason).map_err(slipway_core::Refusal::from)?;
    let deletion_id = DeletionId::new(context.entropy.uuid());
    let mut transitioned = Vec::new();
    context
        .stores
        .broker
        .decide(ResourceKey::Resource(id), &mut |snapshot| {
            let commit = retry::request(snapshot, deletion_id, &reason, &actor)?;
            transitioned = transitions(&commit, Some(snapshot));
            Ok(commit)
        })
        .await?;
    tracing::info!(resource_id = %id, "retry accepted");
    context.meter.transitioned(&transitioned);
    context.wakes.wake();
    Ok(())
}
