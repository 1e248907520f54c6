//! Replacing a resource by another attempt, as declared or with corrections.

use slipway_core::broker::redeclare::{Corrections, RedeclareSnapshot};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::broker::{replace, surge};
use slipway_core::deletion::door::Doored;
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use slipway_core::precondition::Expected;
use slipway_core::text::check_reference;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::{RedeclareKey, Redeclared, ResourceKey};
use crate::deletion::request::{DeleteOptions, input};
use crate::{Context, Error};

/// Which of two attempts comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The old one goes, then the new one is made.
    OldGoesFirst,
    /// The new one becomes Ready beside the old one, which then goes.
    Surge,
}

/// Replaces the attempt by another one, with the corrections, in this order.
pub async fn replace(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: Option<&str>,
    corrections: &Corrections,
    order: Order,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ResourceReplace)?;
    reach::reach_resource(context, caller, id).await?;
    let version = corrections.version.as_deref();
    version.map_or(Ok(()), |text| check_reference("version", text)).map_err(Refusal::from)?;
    let options = DeleteOptions { reason, expected, ..DeleteOptions::default() };
    let ask = options.ask(context, caller)?;
    let (mut refused, mut transitioned) = (None, Vec::new());
    let mut rule = |snapshot: &Doored<RedeclareSnapshot>| {
        let requested = match order {
            Order::OldGoesFirst => replace::request(snapshot, corrections, &ask, &actor)?,
            Order::Surge => surge::request(snapshot, corrections, &ask, &actor)?,
        };
        refused = requested.refused;
        transitioned = transitions(&requested.commit, Some(&snapshot.of.resource));
        Ok(requested.commit)
    };
    let of = match order {
        Order::OldGoesFirst => Redeclared::InUse,
        Order::Surge => Redeclared::WithSurge,
    };
    let key = RedeclareKey { resource: id, version: corrections.version.clone(), of };
    let input = input(context, caller, &ask);
    context.stores.broker.decide_replacement(&key, input, &mut rule).await?;
    if let Some(refused) = refused {
        return Err(refused.into());
    }
    tracing::info!(resource_id = %id, ?order, "replacement accepted");
    context.meter.transitioned(&transitioned);
    context.wakes.wake();
    Ok(())
}

/// Takes the attempt that was to replace the one in use down; the one in use stays.
pub async fn abort(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: Option<&str>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ResourceReplace)?;
    reach::reach_resource(context, caller, id).await?;
    let options = DeleteOptions { reason, expected, ..DeleteOptions::default() };
    let ask = options.ask(context, caller)?;
    let retention = context.settings.deletion.retention;
    let mut transitioned = Vec::new();
    let mut rule = |snapshot: &ResourceSnapshot| {
        let commit =
            surge::abort(snapshot, expected, ask.deletion_id, retention, &ask.reason, &actor)?;
        transitioned = transitions(&commit, Some(snapshot));
        Ok(commit)
    };
    context.stores.broker.decide(ResourceKey::Resource(id), &mut rule).await?;
    tracing::info!(resource_id = %id, "replacement aborted");
    context.meter.transitioned(&transitioned);
    context.wakes.wake();
    Ok(())
}
