//! Reads nodes, with the names of what they belong to.

use std::collections::BTreeMap;

use slipway_core::error::ErrorKind;
use slipway_core::ids::NodeId;
use slipway_core::nodes::node::Node;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::nodes::port::NodeNames;
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

pub async fn node(
    context: &Context,
    caller: &Caller,
    id: NodeId,
) -> Result<(Node, Option<NodeNames>), Error> {
    authorise(caller, Operation::NodeRead)?;
    let missing = || not_found(ErrorKind::NodeNotFound, "node", id);
    reach(context, caller, Owned::Node(id), missing).await?;
    let found = context.stores.nodes.node_fetch(id).await?.ok_or_else(missing)?;
    let names = context.stores.nodes.node_names(&[id]).await?.remove(&id);
    Ok((found, names))
}

pub async fn nodes(
    context: &Context,
    caller: &Caller,
    page: Page<NodeId>,
) -> Result<(Listed<Node>, BTreeMap<NodeId, NodeNames>), Error> {
    authorise(caller, Operation::NodeRead)?;
    let found = match caller.project {
        Some(own) => context.stores.nodes.node_list_in(own, page).await?,
        None => context.stores.nodes.node_list(page).await?,
    };
    let ids: Vec<_> = found.iter().map(|node| node.id).collect();
    let names = context.stores.nodes.node_names(&ids).await?;
    Ok((found, names))
}
