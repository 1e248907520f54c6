//! The placement loop over many clusters, driven as in the product.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slipway_app::placement::clusters;
use slipway_app::placement::reconcile::ManagementRegistry;
use slipway_controller::driver::Dependencies;
use slipway_controller::placement::PlacementLoop;
use slipway_controller::{Shutdown, Status, drive};
use slipway_core::placement::namespace::NamespacePhase;
use slipway_testkit::wait;

use super::cluster::Cluster;
use super::furnish;
use crate::world::World;

const TIMEOUT: Duration = Duration::from_secs(20);

/// More than any limit on concurrent passes would allow.
const HANGING: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_never_answer_hold_up_no_other() {
    for world in World::each("clusters_that_never_answer_hold_up_no_other").await {
        let credential = furnish::catalog(&world, false).await;
        let registry = ManagementRegistry::default();
        for number in 0..HANGING {
            let name = format!("silent-{number}");
            let cluster = Arc::new(Cluster::new(&name, Arc::default()));
            cluster.hangs.store(true, Ordering::SeqCst);
            registry.add(furnish::assignment(&world, &name, credential).await, cluster);
        }
        let placement = furnish::placement(&world, &Arc::default());
        // Nothing is due by itself within this test: only a wake starts a pass.
        let fleets =
            PlacementLoop::new(placement, registry.clone(), "test".to_owned(), 10 * TIMEOUT);
        let dependencies = Dependencies {
            clock: Arc::clone(&world.context.clock),
            entropy: Arc::clone(&world.context.entropy),
            wake: Arc::clone(&world.context.wakes.placement),
        };
        let (stop, shutdown) = Shutdown::channel();
        let status = Arc::new(Status::new(PlacementLoop::NAME));
        let driven = drive(Arc::new(fleets), PlacementLoop::PACING, dependencies, status, shutdown);
        let driven = tokio::spawn(driven);

        for name in ["first", "second"] {
            let cluster = Arc::new(Cluster::new(name, Arc::default()));
            registry.add(furnish::assignment(&world, name, credential).await, cluster);
            wait::until(TIMEOUT, "its namespace to be Ready", async || {
                let assignment = clusters::assignment(&world.context, &world.caller, name).await;
                let phase = assignment.unwrap().namespace_phase;
                if phase == NamespacePhase::Ready { Ok(()) } else { Err(phase) }
            })
            .await;
        }
        // Hanging passes would block an orderly stop.
        driven.abort();
        drop(stop);
    }
}
