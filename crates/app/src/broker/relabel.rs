//! Replacing the labels of a resource.

use std::collections::BTreeMap;

use slipway_core::broker::relabel;
use slipway_core::ids::ResourceId;
use slipway_core::precondition::Expected;
use slipway_core::text::Labels;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::ResourceKey;
use crate::{Context, Error};

pub async fn relabel(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    labels: BTreeMap<String, String>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ResourceRelabel)?;
    reach::reach_resource(context, caller, id).await?;
    let labels = Labels::parse(labels)?;
    let mut rule = |snapshot: &_| relabel::relabel(snapshot, &labels, expected, &actor);
    context.stores.broker.decide(ResourceKey::Resource(id), &mut rule).await?;
    context.wakes.wake();
    Ok(())
}
