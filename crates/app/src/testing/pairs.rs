//! Every pair of operations on one resource, concurrently, in each stage of its
//! life. Assumes nothing about who wins and checks the invariants.

use std::sync::Arc;

use slipway_core::ids::{DrainId, NodeId};
use slipway_core::nodes::node::Reported;
use slipway_core::nodes::token::SecretHash;
use tokio::sync::Barrier;

use super::world::{Declared, World};
use crate::broker::port::Claimed;
use crate::ports::store::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Enrol,
    Delete,
    Acknowledge,
    Leave,
    Force,
    Abandon,
    Tick,
    Heartbeat,
    Wake,
    Relay,
}

const OPERATIONS: [Operation; 10] = [
    Operation::Enrol,
    Operation::Delete,
    Operation::Acknowledge,
    Operation::Leave,
    Operation::Force,
    Operation::Abandon,
    Operation::Tick,
    Operation::Heartbeat,
    Operation::Wake,
    Operation::Relay,
];

#[derive(Debug, Clone, Copy)]
enum Stage {
    Enrolling,
    Ready,
    Draining,
    /// Draining, with a substrate that the loop could not read.
    Lost,
}

/// The targets of a round's operations. If a stage has no node or drain, the
/// ids name none that exists.
#[derive(Debug, Clone, Copy)]
struct Round {
    declared: Declared,
    token: SecretHash,
    node: NodeId,
    drain: DrainId,
    /// Both ticks of a round use the same claim: as by a worker that was
    /// thought dead and is not.
    claimed: Claimed,
}

/// Runs each pair, in each stage.
pub(super) async fn every_pair(world: &Arc<World>) {
    for stage in [Stage::Enrolling, Stage::Ready, Stage::Draining, Stage::Lost] {
        for (index, first) in OPERATIONS.into_iter().enumerate() {
            for second in &OPERATIONS[index..] {
                one_pair(world, stage, first, *second).await;
            }
        }
    }
}

async fn one_pair(world: &Arc<World>, stage: Stage, first: Operation, second: Operation) {
    let context = format!("{first:?} with {second:?} while {stage:?}");
    let mark = world.mark().await;
    let round = mk_round(world, stage).await;
    let barrier = Arc::new(Barrier::new(2));
    let tasks = [first, second].map(|operation| {
        let (world, barrier) = (Arc::clone(world), Arc::clone(&barrier));
        tokio::spawn(async move {
            barrier.wait().await;
            run(&world, operation, round).await
        })
    });
    for task in tasks {
        match task.await.expect("an operation does not panic") {
            // The loser of a race gets a refusal, never an internal error.
            Ok(()) | Err(Error::Refused(_) | Error::NotFound { .. }) => {}
            Err(error) => panic!("{context}: {error}"),
        }
    }
    world.check(mark, round.declared, &context).await;
}

async fn mk_round(world: &World, stage: Stage) -> Round {
    let (declared, node, drain) = match stage {
        Stage::Enrolling => {
            (world.enrolling().await, NodeId::new(world.uuid()), DrainId::new(world.uuid()))
        }
        Stage::Ready => {
            let (declared, node) = world.ready().await;
            (declared, node, DrainId::new(world.uuid()))
        }
        Stage::Draining => world.draining().await,
        Stage::Lost => {
            let (declared, node) = world.lost().await;
            let drain = world.snapshot(declared.attempt).await.node.and_then(|node| node.drain);
            (declared, node, drain.expect("it drains").id)
        }
    };
    let token = world.token(declared.attempt).await;
    let claimed = world.claim_now(declared.attempt).await;
    Round { declared, token, node, drain, claimed }
}

async fn run(world: &World, operation: Operation, round: Round) -> Result<(), Error> {
    match operation {
        Operation::Enrol => world.enrol(round.token, world.public_key()).await.map(|_| ()),
        Operation::Delete => world.delete(round.declared.resource).await.map(|_| ()),
        Operation::Acknowledge => world.acknowledge(round.node, round.drain).await,
        Operation::Leave => world.leave(round.node).await,
        Operation::Force => world.force(round.declared.resource).await,
        Operation::Abandon => world.abandon(round.declared).await,
        Operation::Tick => world.tick(round.claimed).await,
        Operation::Heartbeat => {
            let reported = Reported::default();
            world.store.nodes.node_heartbeat(round.node, &reported).await.map(|_| ())
        }
        Operation::Wake => world.wake(round.declared.attempt).await,
        Operation::Relay => world.store.events.outbox_relay(100).await.map(|_| ()),
    }
}
