//! Counts, compared with what the test just made.

use std::collections::BTreeMap;

use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::nodes::node::{Reachability, Reported};

use crate::operations::port::Counts;
use crate::testing::world::World;

async fn count(world: &World) -> Counts {
    world.store.operations.counts().await.expect("numbers")
}

fn grown<K: Ord + Copy>(before: &BTreeMap<K, u64>, after: &BTreeMap<K, u64>, key: K) -> u64 {
    let of = |numbers: &BTreeMap<K, u64>| numbers.get(&key).copied().unwrap_or(0);
    of(after) - of(before)
}

pub(super) async fn what_is_made_is_counted_once_where_it_stands(world: &World) {
    let before = count(world).await;
    let waiting = world.enrolling().await;
    let (_, node) = world.ready().await;
    let after = count(world).await;
    assert_eq!(grown(&before.phases, &after.phases, Phase::Enrolling), 1);
    assert_eq!(grown(&before.phases, &after.phases, Phase::Ready), 1);
    assert_eq!(grown(&before.nodes, &after.nodes, Reachability::Unknown), 1, "never heard of");

    world.store.nodes.node_heartbeat(node, &Reported::default()).await.expect("a heartbeat");
    let heard = count(world).await;
    assert_eq!(grown(&before.nodes, &heard.nodes, Reachability::Healthy), 1);
    assert_eq!(grown(&before.nodes, &heard.nodes, Reachability::Unknown), 0);
    assert_eq!(
        heard.nodes.values().sum::<u64>(),
        after.nodes.values().sum::<u64>(),
        "each node is counted once"
    );

    let unknown = CompositeReport::Unknown { reason: "no route".to_owned() };
    let claimed = world.claim_now(waiting.attempt).await;
    world.tick_seeing(claimed, &unknown).await.expect("a tick");
    let blocked = count(world).await;
    assert_eq!(grown(&heard.blockers, &blocked.blockers, BlockerCode::SubstrateUnknown), 1);

    world.leave(node).await.expect("it leaves");
    let left = count(world).await;
    assert_eq!(grown(&before.nodes, &left.nodes, Reachability::Healthy), 0, "not registered");
}
