//! What an enrolled node says: heartbeats, the end of its drain, its leaving.
//! The caller has authenticated the node.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DrainId, NodeId};
use slipway_core::rules::drain;

use crate::ports::store::{Heartbeat, ResourceKey};
use crate::{Context, Error};

/// Notes that the node is alive; tells it whether to drain.
pub async fn heartbeat(context: &Context, id: NodeId) -> Result<Heartbeat, Error> {
    let answer = context.store.node_heartbeat(id).await?;
    answer.ok_or_else(|| {
        // It was deregistered between authentication and here.
        Refusal::new(ErrorKind::Unauthenticated, "this node is no longer registered").into()
    })
}

/// The node finished what it was doing.
pub async fn acknowledge_drain(
    context: &Context,
    id: NodeId,
    drain_id: DrainId,
) -> Result<(), Error> {
    context
        .store
        .decide(ResourceKey::Node(id), &mut |snapshot| drain::acknowledge(snapshot, id, drain_id))
        .await?;
    context.wakes.wake();
    Ok(())
}

/// The node leaves by itself.
pub async fn leave(context: &Context, id: NodeId) -> Result<(), Error> {
    context.store.decide(ResourceKey::Node(id), &mut |snapshot| drain::leave(snapshot, id)).await?;
    context.wakes.wake();
    Ok(())
}
