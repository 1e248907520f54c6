//! Reading: resources, nodes and deletions.

use slipway_core::deletion::Deletion;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, NodeId, ResourceId};
use slipway_core::node::Node;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_core::text::check_reference;

use crate::authorise::{Caller, Verb, authorise};
use crate::ports::store::{CorruptRow, Page, ResourceFilter};
use crate::{Context, Error};

/// How many rows a list answers at most, and by default.
pub const PAGE_MAX: u32 = 500;
pub const PAGE_DEFAULT: u32 = 100;

pub async fn resource(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
) -> Result<ResourceSnapshot, Error> {
    authorise(caller, Verb::ResourceRead)?;
    let found = context.store.resource_fetch(id).await?;
    found.ok_or_else(|| not_found(ErrorKind::ResourceNotFound, "resource", id))
}

pub async fn resources(
    context: &Context,
    caller: &Caller,
    filter: &ResourceFilter,
    page: Page<ResourceId>,
) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
    authorise(caller, Verb::ResourceRead)?;
    for (field, text) in [("project", &filter.project), ("handle", &filter.handle)] {
        let checked = text.as_ref().map_or(Ok(()), |text| check_reference(field, text));
        checked.map_err(Refusal::from)?;
    }
    Ok(context.store.resource_list(filter, page).await?)
}

pub async fn node(context: &Context, caller: &Caller, id: NodeId) -> Result<Node, Error> {
    authorise(caller, Verb::NodeRead)?;
    let found = context.store.node_fetch(id).await?;
    found.ok_or_else(|| not_found(ErrorKind::NodeNotFound, "node", id))
}

pub async fn nodes(
    context: &Context,
    caller: &Caller,
    page: Page<NodeId>,
) -> Result<Vec<Node>, Error> {
    authorise(caller, Verb::NodeRead)?;
    Ok(context.store.node_list(page).await?)
}

pub async fn deletion(
    context: &Context,
    caller: &Caller,
    id: DeletionId,
) -> Result<Deletion, Error> {
    authorise(caller, Verb::DeletionRead)?;
    let found = context.store.deletion_fetch(id).await?;
    found.ok_or_else(|| not_found(ErrorKind::DeletionNotFound, "deletion", id))
}

pub async fn deletions(
    context: &Context,
    caller: &Caller,
    page: Page<DeletionId>,
) -> Result<Vec<Deletion>, Error> {
    authorise(caller, Verb::DeletionRead)?;
    Ok(context.store.deletion_list(page).await?)
}

fn not_found(error: ErrorKind, kind: &str, id: impl std::fmt::Display) -> Error {
    Refusal::new(error, format!("there is no {kind} {id}; check the id")).into()
}
