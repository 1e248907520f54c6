//! Requesting the deletion of a resource.

use slipway_core::broker::delete;
use slipway_core::broker::transition::transitions;
use slipway_core::ids::{DeletionId, ResourceId};
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::ResourceKey;
use crate::{Context, Error};

/// The reason if a request gives none.
const NO_REASON: &str = "none given";

/// Accepts the deletion, or returns the one that is under way.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: Option<&str>,
) -> Result<DeletionId, Error> {
    delete_expecting(context, caller, id, reason, Expected::Any).await
}

/// The same with the revision that the caller read. A deletion request is a
/// write, so a second one with the same revision is stale.
pub async fn delete_expecting(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: Option<&str>,
    expected: Expected,
) -> Result<DeletionId, Error> {
    let actor = authorise(caller, Operation::ResourceDelete)?;
    reach::reach_resource(context, caller, id).await?;
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(slipway_core::Refusal::from)?;
    let fresh = DeletionId::new(context.entropy.uuid());
    let (mut deletion_id, mut transitioned) = (fresh, Vec::new());
    context
        .stores
        .broker
        .decide(ResourceKey::Resource(id), &mut |snapshot| {
            expected.check("resource", snapshot.resource.revision)?;
            let requested = delete::request(snapshot, fresh, &reason, &actor)?;
            deletion_id = requested.deletion_id;
            transitioned = transitions(&requested.commit, Some(snapshot));
            Ok(requested.commit)
        })
        .await?;
    tracing::info!(resource_id = %id, %deletion_id, "deletion accepted");
    context.meter.transitioned(&transitioned);
    context.wakes.wake();
    Ok(deletion_id)
}
