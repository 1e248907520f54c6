//! A change that an engine reports is handled now, not at the next sweep.

use std::sync::Arc;
use std::time::Duration;

use slipway_app::broker::converge::Engines;
use slipway_controller::driver::Loop;
use slipway_controller::resources::ResourceLoop;
use slipway_controller::{Shutdown, watch_engine};
use slipway_core::broker::phase::Phase;

use crate::world::World;

/// No sweep comes within the test.
const NO_SWEEP: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread")]
async fn what_an_engine_sees_change_is_due_at_once() {
    for world in World::each("what_an_engine_sees_change_is_due_at_once").await {
        let id = world.ready("watched").await;
        let attempt = world.get(id).await.attempt.id();
        let substrate = Arc::clone(&world.substrate);
        let engines = Engines::new(world.node_settings.clone());
        let resources = ResourceLoop::new(
            world.context.clone(),
            engines.serving(world.partition, "local", Arc::clone(&substrate) as _),
            "watching".to_owned(),
            world.partition,
            Duration::from_secs(30),
            NO_SWEEP,
        );
        // Runs until it is settled: from then on only the sweep would observe it.
        let mut settled = false;
        while !settled {
            let asked_before = slipway_durable::Moment::now();
            let claimed = world.claim_when_due(&resources).await;
            let lease = slipway_durable::Lease::new(asked_before, Duration::from_secs(30));
            resources.work(claimed, lease).await;
            settled = world.get(id).await.attempt.phase() == Phase::Ready
                && resources.claim(50).await.unwrap().is_empty();
        }
        let (stop, shutdown) = Shutdown::channel();
        let watching = tokio::spawn(watch_engine(
            world.context.clone(),
            Arc::clone(&substrate) as _,
            shutdown,
        ));
        substrate.say_changed(attempt);
        tokio::time::timeout(Duration::from_secs(20), resources.wake().notified())
            .await
            .expect("the loop is woken");
        let claimed: Vec<_> =
            resources.claim(50).await.unwrap().iter().map(|claimed| claimed.id).collect();
        assert_eq!(claimed, [attempt]);
        stop.send_replace(true);
        tokio::time::timeout(Duration::from_secs(20), watching).await.expect("it ends").unwrap();
    }
}
