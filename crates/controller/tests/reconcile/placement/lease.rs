//! A pass starts an action only with more lease left than the action may take.

use std::sync::Arc;
use std::time::Duration;

use slipway_app::permits::Permits;
use slipway_app::placement::reconcile::PassLease;
use slipway_core::placement::cluster::Cluster as ClusterRow;

use super::cluster::Cluster;
use super::furnish;
use crate::simulated::Simulated;
use crate::world::World;

/// A lease that is about to end.
#[derive(Debug)]
struct Ending;

impl PassLease for Ending {
    fn deadline(&self) -> Duration {
        Duration::from_secs(6)
    }

    fn allows_action(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_whose_lease_is_about_to_end_starts_no_action() {
    for world in &World::each("a_pass_whose_lease_is_about_to_end_starts_no_action").await {
        let credential = furnish::catalog(world, true).await;
        let id = furnish::assignment(world, "ending", credential).await;
        let kind = world.context.stores.kind::<ClusterRow>();
        let row = kind.fetch(&id.to_string(), false).await.unwrap().unwrap();
        let cluster = Cluster::new("ending", Arc::<Simulated>::default());
        let placement = furnish::placement(world, &Arc::<Permits>::default());
        let summary = placement.pass(&row, &cluster, &Ending).await.unwrap();
        assert!(summary.waiting, "the next pass comes soon");
        assert_eq!(summary.errors, Vec::<String>::new());
        assert!(cluster.objects().is_empty() && cluster.definitions().is_empty());
        placement.pass(&row, &cluster, &furnish::NoEnd).await.unwrap();
        assert!(!cluster.objects().is_empty() && !cluster.definitions().is_empty());
    }
}
