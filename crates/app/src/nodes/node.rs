//! What an enrolled node reports and requests: heartbeats, its peers, the end
//! of its drain, leaving. The caller has authenticated the node.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DrainId, NodeId};
use slipway_core::nodes::drain;
use slipway_core::nodes::node::Reported;

use crate::broker::port::ResourceKey;
use crate::nodes::port::Heartbeat;
use crate::nodes::port::MeshView;
use crate::{Context, Error};

/// A node receives at most this many peers, those with the lowest addresses:
/// each is about 300 bytes, so an answer stays below 100 kB, and in a larger
/// project not every node talks to every other.
pub const MAX_PEERS: u32 = 256;

/// Stores the heartbeat and the node's report; answers whether to drain.
pub async fn heartbeat(
    context: &Context,
    id: NodeId,
    reported: &Reported,
) -> Result<Heartbeat, Error> {
    let answer = context.stores.nodes.node_heartbeat(id, reported).await?;
    answer.ok_or_else(no_longer_registered)
}

/// The node among its peers.
pub async fn peers_of(context: &Context, id: NodeId) -> Result<MeshView, Error> {
    context.stores.nodes.node_mesh(id, MAX_PEERS).await?.ok_or_else(no_longer_registered)
}

/// The node was deregistered after it was authenticated.
fn no_longer_registered() -> Error {
    Refusal::new(ErrorKind::Unauthenticated, "this node is no longer registered").into()
}

/// The node finished its drain.
pub async fn acknowledge_drain(
    context: &Context,
    id: NodeId,
    drain_id: DrainId,
) -> Result<(), Error> {
    context
        .stores
        .broker
        .decide(ResourceKey::Node(id), &mut |snapshot| drain::acknowledge(snapshot, id, drain_id))
        .await?;
    tracing::info!(node_id = %id, %drain_id, "a node finished its drain");
    context.wakes.wake();
    Ok(())
}

/// The node leaves on its own initiative.
pub async fn leave(context: &Context, id: NodeId) -> Result<(), Error> {
    context
        .stores
        .broker
        .decide(ResourceKey::Node(id), &mut |snapshot| Ok(drain::leave(snapshot, id)))
        .await?;
    tracing::info!(node_id = %id, "a node left");
    context.wakes.wake();
    Ok(())
}
