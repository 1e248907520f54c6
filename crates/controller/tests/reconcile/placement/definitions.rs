//! Installs the definitions of a blueprint, with a fault at every read and
//! every action on them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use slipway_app::permits::Permits;
use slipway_app::ports::store::Page;
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::ids::{CloudCredentialId, ClusterId};
use slipway_core::placement::cluster::Cluster as ClusterRow;
use slipway_core::placement::definitions::{DefinitionKind, DefinitionPhase};

use super::cluster::{Cluster, Fault};
use super::furnish;
use crate::simulated::Simulated;
use crate::world::World;

const TIMEOUT: Duration = Duration::from_secs(20);

async fn phase(world: &World, cluster: ClusterId) -> Option<DefinitionPhase> {
    let store = &world.context.stores;
    let blueprint =
        store.kind::<Blueprint>().fetch(furnish::BLUEPRINT, false).await.unwrap().unwrap();
    let page = Page { after: None, limit: 1_000 };
    let listed = store.placement.definitions_list(blueprint.id, page).await.unwrap().items;
    let shown = listed.into_iter().find(|shown| shown.cluster_id == cluster);
    shown.and_then(|shown| shown.definitions).map(|definitions| definitions.phase)
}

/// Runs until they are Established; returns the numbers of the calls about them.
async fn live(
    world: &World,
    credential: CloudCredentialId,
    number: usize,
    fault: Option<(u64, Fault)>,
) -> Vec<u64> {
    let name = format!("delivery-{number}");
    let id = furnish::assignment(world, &name, credential).await;
    let cluster = Arc::new(Cluster::new(&name, Arc::<Simulated>::default()));
    if let Some((call, fault)) = fault {
        cluster.plan(call, fault);
    }
    let permits = Arc::<Permits>::default();
    let mut placement = furnish::placement(world, &permits);
    let started = Instant::now();
    while phase(world, id).await != Some(DefinitionPhase::Established) {
        assert!(started.elapsed() < TIMEOUT, "{name}, {fault:?}");
        let row = world
            .context
            .stores
            .kind::<ClusterRow>()
            .fetch(&id.to_string(), false)
            .await
            .unwrap()
            .unwrap();
        tokio::select! {
            biased;
            summary = placement.pass(&row, cluster.as_ref(), &furnish::NoEnd) => drop(summary.unwrap()),
            () = cluster.crashed.notified() => placement = furnish::placement(world, &permits),
        }
    }
    assert_eq!(cluster.violations(), Vec::<String>::new(), "{name}, {fault:?}");
    assert_eq!(cluster.definitions(), DefinitionKind::ALL, "{name}, {fault:?}");
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
async fn a_fault_at_every_call_of_an_installation_of_definitions_repeats_nothing() {
    let worlds =
        World::each("a_fault_at_every_call_of_an_installation_of_definitions_repeats_nothing")
            .await;
    join_all(worlds.iter().map(at_every_call)).await;
}
