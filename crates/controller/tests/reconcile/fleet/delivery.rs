//! A blueprint is delivered, with a fault at every question and every action
//! that is about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use slipway_app::gate::Gate;
use slipway_app::ports::store::Page;
use slipway_core::delivery::{DeliveredKind, DeliveryPhase};
use slipway_core::ids::{CloudCredentialId, ClusterId};

use super::cluster::{Cluster, Fault};
use super::furnish;
use crate::simulated::Simulated;
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);

async fn phase(world: &World, cluster: ClusterId) -> Option<DeliveryPhase> {
    let store = &world.context.stores;
    let blueprint = store.catalog.blueprint_fetch(furnish::BLUEPRINT).await.unwrap().unwrap();
    let page = Page { after: None, limit: 1_000 };
    let listed = store.placement.delivery_list(blueprint.id, page).await.unwrap().items;
    let shown = listed.into_iter().find(|shown| shown.cluster_id == cluster);
    shown.and_then(|shown| shown.delivery).map(|delivery| delivery.phase)
}

/// Until all of it stands; the calls that were about it.
async fn live(
    world: &World,
    credential: CloudCredentialId,
    number: usize,
    fault: Option<(u64, Fault)>,
) -> Vec<u64> {
    let name = format!("delivery-{number}");
    let id = furnish::place(world, &name, credential).await;
    let cluster = Arc::new(Cluster::new(&name, Arc::<Simulated>::default()));
    if let Some((call, fault)) = fault {
        cluster.plan(call, fault);
    }
    let gate = Arc::<Gate>::default();
    let mut fleet = furnish::fleet(world, &gate);
    let started = Instant::now();
    while phase(world, id).await != Some(DeliveryPhase::Established) {
        assert!(started.elapsed() < PATIENCE, "{name}, {fault:?}");
        let row =
            world.context.stores.placement.cluster_fetch(&id.to_string()).await.unwrap().unwrap();
        tokio::select! {
            biased;
            turned = fleet.turn(&row, cluster.as_ref()) => drop(turned.unwrap()),
            () = cluster.crashed.notified() => fleet = furnish::fleet(world, &gate),
        }
    }
    assert_eq!(cluster.violations(), Vec::<String>::new(), "{name}, {fault:?}");
    assert_eq!(cluster.delivered(), DeliveredKind::ALL, "{name}, {fault:?}");
    cluster.defined.lock().unwrap().calls.clone()
}

async fn at_every_call(world: &World) {
    let credential = furnish::catalog(world, true).await;
    let calls = live(world, credential, 0, None).await;
    assert!(calls.len() >= 9, "only {calls:?}: the scenario does not do what it says");
    let faults = [Fault::FailBefore, Fault::FailAfter, Fault::CrashBefore, Fault::CrashAfter];
    let points = calls.into_iter().flat_map(|call| faults.map(|fault| (call, fault)));
    for (number, point) in points.enumerate() {
        live(world, credential, number + 1, Some(point)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_every_call_of_a_delivery_repeats_nothing() {
    let worlds = World::each("a_fault_at_every_call_of_a_delivery_repeats_nothing").await;
    join_all(worlds.iter().map(at_every_call)).await;
}
