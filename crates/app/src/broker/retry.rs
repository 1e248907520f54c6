//! Retrying a failed attempt, as it was declared or with corrections.

use slipway_core::broker::redeclare::{Corrections, RedeclareSnapshot};
use slipway_core::broker::retry;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::commit::Commit;
use slipway_core::ids::{DeletionId, ResourceId};
use slipway_core::text::{Reason, check_reference};

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::{RedeclareKey, Redeclared, ResourceKey};
use crate::{Context, Error};

/// Takes the attempt down in order; then the next attempt follows, with the corrections.
pub async fn retry(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: &str,
    corrections: &Corrections,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ResourceRetry)?;
    reach::reach_resource(context, caller, id).await?;
    let reason = Reason::parse(reason).map_err(slipway_core::Refusal::from)?;
    let version = corrections.version.as_deref();
    version.map_or(Ok(()), |text| check_reference("version", text))?;
    let deletion_id = DeletionId::new(context.entropy.uuid());
    let retention = context.settings.deletion.retention;
    let mut transitioned = Vec::new();
    let mut noted = |commit: Commit, snapshot: &ResourceSnapshot| {
        transitioned = transitions(&commit, Some(snapshot));
        commit
    };
    let store = &context.stores.broker;
    if corrections.is_empty() {
        let mut rule = |snapshot: &ResourceSnapshot| {
            let commit = retry::request(snapshot, deletion_id, retention, &reason, &actor)?;
            Ok(noted(commit, snapshot))
        };
        store.decide(ResourceKey::Resource(id), &mut rule).await?;
    } else {
        let key = RedeclareKey {
            resource: id,
            version: corrections.version.clone(),
            of: Redeclared::Beside,
        };
        let mut rule = |snapshot: &RedeclareSnapshot| {
            let commit = retry::request_corrected(
                snapshot,
                corrections,
                deletion_id,
                retention,
                &reason,
                &actor,
            )?;
            Ok(noted(commit, &snapshot.resource))
        };
        store.decide_redeclaration(&key, &mut rule).await?;
    }
    tracing::info!(resource_id = %id, corrected = !corrections.is_empty(), "retry accepted");
    context.meter.transitioned(&transitioned);
    context.wakes.wake();
    Ok(())
}
