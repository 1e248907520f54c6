//! Abandoning a resource whose deletion can never end.

use slipway_core::broker::abandon::{self, Circumstances, Request};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ProvisionedResourceId, ResourceId};
use slipway_core::text::Reason;

use crate::Error;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::{AttemptFilter, ResourceKey};
use crate::deletion::leaks::Finder;
use crate::ports::store;

/// Attempts of one resource that are abandoned with it, at most. More than one is rare: each
/// earlier one would have to wait for its second proof.
const ATTEMPTS: u32 = 100;

/// Abandons the current attempt of a resource, and then earlier ones whose absence is not
/// proven either: they would keep the project on its cluster. `confirm` repeats the handle.
/// Repeated, it does what is left to do.
pub async fn abandon(
    finder: &Finder,
    caller: &Caller,
    id: ResourceId,
    reason: &str,
    confirm: &str,
) -> Result<(), Error> {
    let context = finder.context();
    let actor = authorise(caller, Operation::ResourceAbandon)?;
    reach::reach_resource(context, caller, id).await?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    let request = Request { reason: &reason, confirm };
    let broker = &context.stores.broker;
    let current = broker.resource_fetch(id).await?;
    let current = current.ok_or(store::Error::NotFound { kind: ResourceId::KIND })?;
    let current = current.torn_down().attempt.id();
    let decide = async |attempt: ProvisionedResourceId| {
        // Observed right before the decision, and not in its transaction.
        let report = finder.observed(attempt).await?;
        let mode = context.stores.operations.control_fetch().await?.mode();
        let circumstances = Circumstances {
            report: report.as_ref(),
            mode: &mode,
            deadlines: &context.settings.deadlines,
            claimed_within: context.settings.claimed_within,
        };
        let mut transitioned = Vec::new();
        let mut rule = |snapshot: &ResourceSnapshot| {
            let commit = abandon::request(snapshot, request, circumstances, &actor)?;
            transitioned = transitions(&commit, Some(snapshot));
            Ok(commit)
        };
        broker.decide(ResourceKey::Attempt(attempt), &mut rule).await.map_err(Error::from)?;
        context.meter.transitioned(&transitioned);
        Ok::<_, Error>(())
    };
    decide(current).await?;
    let of_resource = AttemptFilter { resource: Some(id), ..AttemptFilter::default() };
    for line in broker.attempt_lines(of_resource, ATTEMPTS).await? {
        if line.id == current || line.absence_proven_at.is_some() {
            continue;
        }
        match decide(line.id).await {
            // The loop still proves the absence of this one.
            Err(error) if error.kind() == ErrorKind::NotAbandonable => {}
            decided => decided?,
        }
    }
    tracing::warn!(resource_id = %id, "a resource was abandoned; see its leak records");
    context.wakes.wake();
    context.wakes.wake_placement();
    Ok(())
}
