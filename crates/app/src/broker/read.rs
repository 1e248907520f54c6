//! Reads resources.

use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::project::Project;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ProvisionedResourceId, ResourceId};
use slipway_core::operations::explanation::AttemptLine;
use slipway_core::text::check_reference;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::broker::port::{AttemptFilter, HistoryLine, ResourceFilter};
use crate::kind;
use crate::ports::Listed;
use crate::ports::store::{self, Page};
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

/// How many attempts, and how many lines of history, are shown with a resource.
const SHOWN: u32 = 100;

/// Every attempt of a resource, and the history of this one; newest first.
pub async fn past(
    context: &Context,
    snapshot: &ResourceSnapshot,
) -> Result<(Vec<AttemptLine>, RecentHistory), Error> {
    let filter = AttemptFilter { resource: Some(snapshot.resource.id), ..AttemptFilter::default() };
    let attempts = context.stores.broker.attempt_lines(filter, SHOWN).await?;
    Ok((attempts, recent_history(context, snapshot.attempt.id()).await?))
}

/// The newest lines of a history.
#[derive(Debug, Clone)]
pub struct RecentHistory {
    /// Newest first.
    pub lines: Vec<HistoryLine>,
    /// There are lines before these.
    pub has_older: bool,
}

/// The part of a history that is shown with the resource; [`history`] has the rest.
pub async fn recent_history(
    context: &Context,
    attempt: ProvisionedResourceId,
) -> Result<RecentHistory, store::Error> {
    // One more, to learn whether there is one.
    let page = Page { after: None, limit: SHOWN + 1 };
    let mut lines = context.stores.broker.history_list(attempt, page).await?;
    let has_older = lines.len() > SHOWN as usize;
    lines.truncate(SHOWN as usize);
    Ok(RecentHistory { lines, has_older })
}

/// A page of the attempts of a resource, newest first; the cursor is the number of the
/// last one.
pub async fn attempts(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    page: Page<i64>,
) -> Result<Listed<AttemptLine, i64>, Error> {
    authorise(caller, Operation::ResourceRead)?;
    let missing = || not_found(ErrorKind::ResourceNotFound, "resource", id);
    reach(context, caller, Owned::Resource(id), missing).await?;
    let before = page.after.map(|number| i32::try_from(number).unwrap_or(i32::MAX));
    let filter = AttemptFilter { resource: Some(id), before, ..AttemptFilter::default() };
    let lines = context.stores.broker.attempt_lines(filter, page.limit).await?;
    if lines.is_empty() && before.is_none() {
        return Err(missing());
    }
    Ok(Listed::complete(lines, page.limit, |line| i64::from(line.number)))
}

/// A page of the history of one attempt of a resource, newest first: of the
/// attempt with this number, or of the current one.
pub async fn history(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    number: Option<i32>,
    page: Page<i64>,
) -> Result<Listed<HistoryLine, i64>, Error> {
    authorise(caller, Operation::ResourceRead)?;
    let missing = || not_found(ErrorKind::ResourceNotFound, "resource", id);
    reach(context, caller, Owned::Resource(id), missing).await?;
    // From the rows as they are: also a quarantined one has a history.
    let in_use = number.is_none();
    let filter = AttemptFilter { resource: Some(id), number, in_use, ..AttemptFilter::default() };
    let attempts = context.stores.broker.attempt_lines(filter, 1).await?;
    let attempt = attempts.first().ok_or_else(|| match number {
        None => missing(),
        Some(number) => Refusal::invalid(
            "attempt",
            format!("resource {id} has no attempt {number}; GET /api/v1/resources/{id} has them"),
        )
        .into(),
    })?;
    let lines = context.stores.broker.history_list(attempt.id, page).await?;
    Ok(Listed::complete(lines, page.limit, |line| line.number))
}

pub async fn resources(
    context: &Context,
    caller: &Caller,
    filter: &ResourceFilter,
    page: Page<ResourceId>,
) -> Result<Listed<ResourceSnapshot>, Error> {
    authorise(caller, Operation::ResourceRead)?;
    filter.handle.as_ref().map_or(Ok(()), |handle| check_reference("handle", handle))?;
    if let Some(project) = &filter.project {
        kind::known::<Project>(context, caller, project).await?;
    }
    let Some(own) = caller.project else {
        let rows = context.stores.broker.resource_list(filter, page).await?;
        return Ok(Listed::resources(rows, page.limit));
    };
    let own = ResourceFilter { project: Some(own.to_string()), ..filter.clone() };
    let rows = context.stores.broker.resource_list(&own, page).await?;
    Ok(Listed::resources(rows, page.limit))
}
