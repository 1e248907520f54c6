//! The fleet loop over many clusters, driven as it is in the product.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slipway_app::usecases::catalog::clusters;
use slipway_app::usecases::fleet::Reached;
use slipway_controller::driver::Surroundings;
use slipway_controller::fleet::FleetLoop;
use slipway_controller::{Shutdown, Status, drive};
use slipway_core::placement::NamespacePhase;
use slipway_testkit::wait;

use super::cluster::Cluster;
use super::furnish;
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);

/// More than are looked at in one go, if any are.
const HANGING: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_never_answer_hold_up_no_other() {
    for world in World::each("clusters_that_never_answer_hold_up_no_other").await {
        let credential = furnish::catalog(&world, false).await;
        let reached = Reached::default();
        for number in 0..HANGING {
            let name = format!("silent-{number}");
            let cluster = Arc::new(Cluster::new(&name, Arc::default()));
            cluster.hangs.store(true, Ordering::SeqCst);
            reached.add(furnish::place(&world, &name, credential).await, cluster);
        }
        let fleet = furnish::fleet(&world, &Arc::default());
        // Nothing is due by itself within this test: who asks has to be heard.
        let fleets = FleetLoop::new(fleet, reached.clone(), "test".to_owned(), 10 * PATIENCE);
        let surroundings = Surroundings {
            clock: Arc::clone(&world.context.clock),
            entropy: Arc::clone(&world.context.entropy),
            wake: Arc::clone(&world.context.wakes.fleet),
        };
        let (stop, shutdown) = Shutdown::channel();
        let status = Arc::new(Status::new(FleetLoop::NAME));
        let driven = drive(Arc::new(fleets), FleetLoop::PACING, surroundings, status, shutdown);
        let driven = tokio::spawn(driven);

        for name in ["first", "second"] {
            let cluster = Arc::new(Cluster::new(name, Arc::default()));
            reached.add(furnish::place(&world, name, credential).await, cluster);
            wait::until(PATIENCE, "its namespace to be Ready", async || {
                let place = clusters::assignment(&world.context, &world.caller, name).await;
                let phase = place.unwrap().namespace_phase;
                if phase == NamespacePhase::Ready { Ok(()) } else { Err(phase) }
            })
            .await;
        }
        // What hangs would not let it end.
        driven.abort();
        drop(stop);
    }
}
