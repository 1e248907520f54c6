//! Reads nodes.

use slipway_core::error::ErrorKind;
use slipway_core::ids::NodeId;
use slipway_core::nodes::node::Node;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

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
