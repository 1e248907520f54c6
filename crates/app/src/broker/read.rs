//! Reads resources.

use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::project::Project;
use slipway_core::error::ErrorKind;
use slipway_core::ids::ResourceId;
use slipway_core::operations::explanation::AttemptLine;
use slipway_core::text::check_reference;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::broker::port::{AttemptFilter, HistoryLine, ResourceFilter};
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

pub async fn resource(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
) -> Result<ResourceSnapshot, Error> {
    authorise(caller, Operation::ResourceRead)?;
    let missing = || not_found(ErrorKind::ResourceNotFound, "resource", id);
    reach(context, caller, Owned::Resource(id), missing).await?;
    let found = context.stores.broker.resource_fetch(id).await?;
    found.ok_or_else(missing)
}

/// How many attempts, and how many lines of history, are shown of a resource.
const SHOWN: u32 = 100;

/// Every attempt of a resource, and the history of this one; newest first.
pub async fn past(
    context: &Context,
    snapshot: &ResourceSnapshot,
) -> Result<(Vec<AttemptLine>, Vec<HistoryLine>), Error> {
    let filter = AttemptFilter { resource: Some(snapshot.resource.id), ..AttemptFilter::default() };
    let attempts = context.stores.broker.attempt_lines(filter, SHOWN).await?;
    let mut history = context.stores.broker.history_list(snapshot.attempt.id()).await?;
    history.reverse();
    history.truncate(SHOWN as usize);
    Ok((attempts, history))
}

pub async fn resources(
    context: &Context,
    caller: &Caller,
    filter: &ResourceFilter,
    page: Page<ResourceId>,
) -> Result<Listed<ResourceSnapshot>, Error> {
    authorise(caller, Operation::ResourceRead)?;
    for (field, text) in [("project", &filter.project), ("handle", &filter.handle)] {
        text.as_ref().map_or(Ok(()), |text| check_reference(field, text))?;
    }
    let Some(own) = caller.project else {
        let rows = context.stores.broker.resource_list(filter, page).await?;
        return Ok(Listed::resources(rows, page.limit));
    };
    if let Some(named) = &filter.project {
        let named = context.stores.kind::<Project>().fetch(named, true).await?;
        if named.is_none_or(|named| named.id != own) {
            return Ok(Listed::only(Vec::new()));
        }
    }
    let own = ResourceFilter { project: Some(own.to_string()), ..filter.clone() };
    let rows = context.stores.broker.resource_list(&own, page).await?;
    Ok(Listed::resources(rows, page.limit))
}
