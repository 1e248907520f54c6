//! The whole life of a project on its cluster, with a fault at every read and
//! every action of the placement loop: the answer lost, the call refused, the
//! process dead before or after it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use slipway_app::broker::converge::Engines;
use slipway_app::operations::control;
use slipway_app::permits::Permits;
use slipway_app::placement::clusters;
use slipway_app::placement::reconcile::PlacementReconciler;
use slipway_controller::driver::Loop as _;
use slipway_controller::resources::ResourceLoop;
use slipway_core::ErrorKind;
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{CloudCredentialId, ClusterId};
use slipway_core::placement::cluster::Cluster as ClusterRow;
use slipway_core::placement::cluster::ClusterAssignment;
use slipway_core::placement::namespace::NamespacePhase;
use slipway_core::placement::shared_objects::SharedKind;
use slipway_core::precondition::Expected;
use slipway_durable::{Lease, Moment};

use super::cluster::{Cluster, Fault};
use super::furnish;
use crate::simulated::{Behaviour, Moment as SimulatedMoment, Simulated};
use crate::world::World;

const LEASE: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(20);

/// One life of a project, with one fault.
struct Run<'a> {
    world: &'a World,
    /// Of the cluster and of the project.
    name: String,
    title: String,
    id: ClusterId,
    cluster: Arc<Cluster>,
    resources: ResourceLoop,
    placement: PlacementReconciler,
    permits: Arc<Permits>,
}

impl<'a> Run<'a> {
    async fn begin(
        world: &'a World,
        credential: CloudCredentialId,
        number: usize,
        fault: Option<(u64, Fault)>,
    ) -> Self {
        let name = format!("run-{number}");
        let id = furnish::assignment(world, &name, credential).await;
        let composites = Arc::new(Simulated::of(Engine::Crossplane));
        composites.behave(Behaviour { comes_up: true, ..Behaviour::default() });
        let engines = Engines::new(world.node_settings.clone());
        let engines = engines.serving(id.into(), &name, Arc::clone(&composites) as _);
        let permits = Arc::<Permits>::default();
        let resources = ResourceLoop::new(
            world.context.clone(),
            engines,
            "test".to_owned(),
            id.into(),
            LEASE,
            Duration::from_millis(40),
        )
        .with_second_proof_after(Duration::from_millis(10))
        .with_permits(Arc::clone(&permits));
        let cluster = Arc::new(Cluster::new(&name, composites));
        if let Some((call, fault)) = fault {
            cluster.plan(call, fault);
        }
        let placement = furnish::placement(world, &permits);
        let title = format!("{name}, {fault:?}");
        Self { world, name, title, id, cluster, resources, placement, permits }
    }

    /// One pass of the placement loop, and one round of the resource loop.
    async fn advance(&mut self) {
        let store = &self.world.context.stores;
        let row =
            store.kind::<ClusterRow>().fetch(&self.id.to_string(), false).await.unwrap().unwrap();
        tokio::select! {
            biased;
            // Errors are only reported to people: a refused call is retried.
            summary = self.placement.pass(&row, self.cluster.as_ref(), &furnish::NoEnd) => drop(summary.unwrap()),
            // Of a dead process only its writes remain.
            () = self.cluster.crashed.notified() => {
                self.placement = furnish::placement(self.world, &self.permits);
            }
        }
        let asked_before = Moment::now();
        let claimed = self.resources.claim(50).await.unwrap();
        if !claimed.is_empty() {
            let errors = self.resources.work(claimed, Lease::new(asked_before, LEASE)).await;
            assert_eq!(errors, Vec::<String>::new(), "{}", self.title);
        }
    }

    async fn until(&mut self, what: &str, registry: impl AsyncFn(&World, &str) -> bool) {
        let started = Instant::now();
        while !registry(self.world, &self.name).await {
            assert!(
                started.elapsed() < TIMEOUT,
                "{}: waited for {what}; {:?}",
                self.title,
                assignment(self.world, &self.name).await
            );
            self.advance().await;
        }
    }

    /// From nothing to Ready and back; returns the number of calls to the cluster.
    async fn live(mut self) -> u64 {
        self.withdraw().await;
        self.clear().await;
        self.cluster.calls()
    }

    /// From nothing to Ready, and until the project has left the cluster's rows.
    async fn withdraw(&mut self) {
        let resource = furnish::declare(self.world, &self.name).await;
        let is = async |world: &World, phase| world.get(resource).await.attempt.phase() == phase;
        self.until("Ready", async |world, _| is(world, Phase::Ready).await).await;
        self.world.delete(resource).await;
        self.until("Deleted", async |world, _| is(world, Phase::Deleted).await).await;
        self.until("a project that owns nothing", async |world, name| {
            let assignment = clusters::withdraw(&world.context, &world.caller, name, Expected::Any);
            match assignment.await {
                Ok(_) => true,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::ClusterAssignmentImmutable, "{error}");
                    false
                }
            }
        })
        .await;
    }

    /// Until nothing is left on the cluster.
    async fn clear(&mut self) {
        self.until("a cleared place", async |world, name| {
            assignment(world, name).await.namespace_phase == NamespacePhase::Deleted
        })
        .await;
        let none = Vec::<String>::new();
        assert_eq!(self.cluster.violations(), none, "{}", self.title);
        assert!(self.cluster.objects().is_empty(), "{}: {:?}", self.title, self.cluster.objects());
    }
}

async fn assignment(world: &World, project: &str) -> ClusterAssignment {
    clusters::assignment(&world.context, &world.caller, project).await.unwrap()
}

async fn at_every_call(world: &World) {
    let credential = furnish::catalog(world, false).await;
    let calls = Run::begin(world, credential, 0, None).await.live().await;
    assert!(calls > 20, "only {calls} calls: the scenario does not do what it says");
    let faults = [Fault::FailBefore, Fault::FailAfter, Fault::CrashBefore, Fault::CrashAfter];
    let points = (1..=calls).flat_map(|call| faults.map(|fault| (call, fault)));
    for (number, point) in points.enumerate() {
        Run::begin(world, credential, number + 1, Some(point)).await.live().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_every_call_leaves_nothing_behind() {
    let worlds = World::each("a_fault_at_every_call_leaves_nothing_behind").await;
    // Most of the time is waiting for the next due row.
    join_all(worlds.iter().map(at_every_call)).await;
}

/// The list before the deletion of a namespace may take seconds. The permit comes after
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_while_residents_are_listed_keeps_the_namespace() {
    for world in World::each("a_freeze_while_residents_are_listed").await {
        let credential = furnish::catalog(&world, false).await;
        let mut run = Run::begin(&world, credential, 0, None).await;
        let (context, caller) = (world.context.clone(), world.caller.clone());
        let permits = Arc::clone(&run.permits);
        let freeze = async move {
            control::freeze(&context, &caller, TIMEOUT, "test").await.unwrap();
            // As the heartbeat of this replica does.
            permits.read(&context.stores).await.unwrap();
        };
        run.cluster.composites.interfere(SimulatedMoment::Residents, Box::pin(freeze));
        run.withdraw().await;
        run.until("a withheld deletion", async |world, name| {
            let problems = assignment(world, name).await.status.problems;
            problems.iter().any(|problem| problem.contains("frozen"))
        })
        .await;
        // What is being deleted would be gone now.
        run.advance().await;
        let kinds: Vec<_> = run.cluster.objects().into_iter().map(|key| key.kind).collect();
        assert!(kinds.contains(&SharedKind::Namespace), "{kinds:?}");
        control::unfreeze(&world.context, &world.caller, "test").await.unwrap();
        run.permits.read(&world.context.stores).await.unwrap();
        run.clear().await;
    }
}
