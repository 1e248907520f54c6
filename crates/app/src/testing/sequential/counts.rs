//! Counts, compared with what the test just made.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::nodes::node::{Reachability, Reported};

use crate::broker::port::{Blocked, ResourceFilter};
use crate::operations::port::Counts;
use crate::ports::store::Page;
use crate::testing::world::World;

async fn count(world: &World) -> Counts {
    world.store.operations.counts(Duration::from_secs(3_600)).await.expect("numbers")
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

    // What is due and unclaimed counts as not served, after any time that it waited.
    let unserved = async |after| {
        let counts = world.store.operations.counts(after).await.expect("numbers");
        counts.blockers.get(&BlockerCode::ClusterNotServed).copied().unwrap_or(0)
    };
    world.park_all().await;
    assert_eq!(unserved(Duration::ZERO).await, 0);
    world.declare(&world.handle()).await.expect("a declaration");
    let late = async || unserved(Duration::ZERO).await == 1;
    while !late().await {
        tokio::task::yield_now().await;
    }
    assert_eq!(unserved(Duration::from_secs(3_600)).await, 0);
    let filter = |code| ResourceFilter {
        blocked: Some(Blocked::By(code)),
        unserved_after: Some(Duration::ZERO),
        ..ResourceFilter::default()
    };
    let page = Page { after: None, limit: 100 };
    for (code, listed) in [(BlockerCode::ClusterNotServed, 1), (BlockerCode::NamespaceNotReady, 0)]
    {
        let found = world.store.broker.resource_list(&filter(code), page).await.expect("a list");
        assert_eq!(found.len(), listed, "{code}");
    }

    world.leave(node).await.expect("it leaves");
    let left = count(world).await;
    assert_eq!(grown(&before.nodes, &left.nodes, Reachability::Healthy), 0, "not registered");
}
