//! Reading: resources, nodes and deletions.

use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::project::Project;
use slipway_core::deletion::record::Deletion;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, NodeId, ResourceId};
use slipway_core::nodes::node::Node;
use slipway_core::operations::explanation::AttemptLine;
use slipway_core::text::check_reference;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::broker::port::AttemptFilter;
use crate::broker::port::{HistoryLine, ResourceFilter};
use crate::ports::Listed;
use crate::ports::store::{self, Page};
use crate::{Context, Error};

/// How many rows a list returns at most, and by default.
pub const PAGE_MAX: u32 = 500;
pub const PAGE_DEFAULT: u32 = 100;

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

pub async fn node(context: &Context, caller: &Caller, id: NodeId) -> Result<Node, Error> {
    authorise(caller, Operation::NodeRead)?;
    let missing = || not_found(ErrorKind::NodeNotFound, "node", id);
    reach(context, caller, Owned::Node(id), missing).await?;
    let found = context.stores.nodes.node_fetch(id).await?;
    found.ok_or_else(missing)
}

pub async fn nodes(
    context: &Context,
    caller: &Caller,
    page: Page<NodeId>,
) -> Result<Listed<Node>, Error> {
    authorise(caller, Operation::NodeRead)?;
    Ok(match caller.project {
        Some(own) => context.stores.nodes.node_list_in(own, page).await?,
        None => context.stores.nodes.node_list(page).await?,
    })
}

pub async fn deletion(
    context: &Context,
    caller: &Caller,
    id: DeletionId,
) -> Result<Deletion, Error> {
    authorise(caller, Operation::DeletionRead)?;
    let missing = || not_found(ErrorKind::DeletionNotFound, "deletion", id);
    reach(context, caller, Owned::Deletion(id), missing).await?;
    let found = context.stores.deletion.deletion_fetch(id).await?;
    found.ok_or_else(missing)
}

pub async fn deletions(
    context: &Context,
    caller: &Caller,
    page: Page<DeletionId>,
) -> Result<Listed<Deletion>, Error> {
    authorise(caller, Operation::DeletionRead)?;
    Ok(match caller.project {
        Some(own) => context.stores.deletion.deletion_list_in(own, page).await?,
        None => context.stores.deletion.deletion_list(page).await?,
    })
}

/// Refuses a resource out of the caller's reach as if it did not exist. Called
/// before anything else, also before a change: a resource never changes its
/// project, so the answer stays true.
pub(crate) async fn reach_resource(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
) -> Result<(), Error> {
    // The same text as the store's answer for a missing resource.
    let unknown = || store::Error::NotFound { kind: ResourceId::KIND }.into();
    reach(context, caller, Owned::Resource(id), unknown).await
}

/// Costs nothing for a caller that reaches everything.
pub(crate) async fn reach(
    context: &Context,
    caller: &Caller,
    owned: Owned,
    missing: impl FnOnce() -> Error + Send,
) -> Result<(), Error> {
    let Some(own) = caller.project else { return Ok(()) };
    match context.stores.access.project_of(owned).await? {
        Some(project) if project == own => Ok(()),
        _ => Err(missing()),
    }
}

fn not_found(error: ErrorKind, kind: &str, id: impl std::fmt::Display) -> Error {
    Refusal::new(error, format!("there is no {kind} {id}; check the id")).into()
}
