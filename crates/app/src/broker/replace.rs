//! Replacing a resource by another attempt, as declared or with corrections.

use slipway_core::broker::redeclare::{Corrections, RedeclareSnapshot};
use slipway_core::broker::replace;
use slipway_core::broker::transition::transitions;
use slipway_core::deletion::door::Doored;
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use slipway_core::precondition::Expected;
use slipway_core::text::check_reference;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::RedeclareKey;
use crate::deletion::request::{DeleteOptions, input};
use crate::{Context, Error};

/// Takes the attempt down in order; then the next attempt follows, with the corrections.
pub async fn replace(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    reason: Option<&str>,
    corrections: &Corrections,
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
        let requested = replace::request(snapshot, corrections, &ask, &actor)?;
        refused = requested.refused;
        transitioned = transitions(&requested.commit, Some(&snapshot.of.resource));
        Ok(requested.commit)
    };
    let key = RedeclareKey { resource: id, version: corrections.version.clone() };
    let input = input(context, caller, &ask);
    context.stores.broker.decide_replacement(&key, input, &mut rule).await?;
    if let Some(refused) = refused {
        return Err(refused.into());
    }
    tracing::info!(resource_id = %id, "replacement accepted");
    context.meter.transitioned(&transitioned);
    context.wakes.wake();
    Ok(())
}
