//! The loops of several partitions, driven as in the product: a slow cluster
//! takes nothing from another, actions are bounded, and a stop is quick.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use slipway_app::broker::converge::Engines;
use slipway_app::broker::port::ResourceFilter;
use slipway_app::ports::Substrate;
use slipway_app::ports::store::Page;
use slipway_controller::driver::Dependencies;
use slipway_controller::resources::ResourceLoop;
use slipway_controller::{Pacing, Shutdown, Status, drive, readiness};
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::{Partition, ResourceId};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::simulated::{Behaviour, Simulated};
use crate::slow::Slow;
use crate::world::World;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Loops over these partitions, one each.
struct Running {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Running {
    fn start(
        world: &World,
        partitions: &[(Partition, Arc<dyn Substrate>)],
        lease: Duration,
    ) -> Self {
        let mut engines = Engines::new(world.node_settings.clone());
        for (partition, substrate) in partitions {
            engines = engines.serving(*partition, "some cluster", Arc::clone(substrate));
        }
        let (stop, shutdown) = Shutdown::channel();
        let mut tasks = JoinSet::new();
        for (partition, _) in partitions {
            let resources = ResourceLoop::new(
                world.context.clone(),
                engines.clone(),
                "test".to_owned(),
                *partition,
                lease,
                Duration::from_secs(1),
            );
            let dependencies = Dependencies {
                clock: Arc::clone(&world.context.clock),
                entropy: Arc::clone(&world.context.entropy),
                wake: resources.wake(),
            };
            let status = Arc::new(Status::new(partition.to_string()));
            let pacing = ResourceLoop::PACING;
            tasks.spawn(drive(Arc::new(resources), pacing, dependencies, status, shutdown.clone()));
        }
        Self { stop, tasks }
    }

    /// Tells the loops to stop and waits until they have.
    async fn stop(mut self) -> Duration {
        let asked = Instant::now();
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        asked.elapsed()
    }
}

fn slow(action: Duration) -> Arc<Slow> {
    let inner = Arc::new(Simulated::default());
    inner.behave(Behaviour { comes_up: true, ..Behaviour::default() });
    Arc::new(Slow { inner, action, ..Slow::default() })
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) => assert!(started.elapsed() < TIMEOUT, "waited for {what}: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_seen(
    world: &World,
    id: ResourceId,
    what: &str,
    wanted: impl Fn(&ResourceSnapshot) -> bool,
) -> ResourceSnapshot {
    until(what, async || {
        let seen = world.get(id).await;
        let text = format!("{} with {:?}", seen.attempt.phase(), seen.blockers);
        if wanted(&seen) { Ok(seen) } else { Err(text) }
    })
    .await
}

async fn all(world: &World) -> Vec<ResourceSnapshot> {
    let page = Page { after: None, limit: 10_000 };
    let listed =
        world.context.stores.broker.resource_list(&ResourceFilter::default(), page).await.unwrap();
    listed.into_iter().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_hangs_takes_nothing_from_another() {
    for world in World::each("a_partition_that_hangs").await {
        let hanging = slow(Duration::ZERO);
        hanging.hangs.store(true, Ordering::SeqCst);
        let other = world.assign("elsewhere").await;
        let mut stuck = Vec::new();
        for number in 0..20 {
            stuck.push(world.declare_in("elsewhere", &format!("stuck-{number}")).await);
        }
        let partitions =
            [(world.partition, world.substrate.clone() as _), (other, hanging.clone() as _)];
        // With this lease an observation times out after one second.
        let running = Running::start(&world, &partitions, Duration::from_secs(3));
        for number in 0..3_u8 {
            let id = world.declare(&format!("web-{number}")).await;
            let phase = |wanted| move |seen: &ResourceSnapshot| seen.attempt.phase() == wanted;
            until_seen(&world, id, "Enrolling", phase(Phase::Enrolling)).await;
            let token = world.token(&world.name(id).await);
            world.enrol(&token, number + 1).await.unwrap();
            until_seen(&world, id, "Ready", phase(Phase::Ready)).await;
        }
        // A hanging resource gets a blocker, and nothing is concluded about it.
        let blocked = |seen: &ResourceSnapshot| !seen.blockers.is_empty();
        let seen = until_seen(&world, stuck[0], "a blocker", blocked).await;
        assert_eq!(seen.attempt.phase(), Phase::Pending);
        assert_eq!(seen.blockers[0].code, BlockerCode::SubstrateUnknown);
        assert!(seen.blockers[0].message.contains("did not answer within 1000 ms"), "{seen:?}");
        hanging.hangs.store(false, Ordering::SeqCst);
        for id in stuck {
            let up = |seen: &ResourceSnapshot| seen.attempt.phase() == Phase::Enrolling;
            until_seen(&world, id, "Enrolling once it answers", up).await;
        }
        running.stop().await;
    }
}

/// The loop of the cluster elsewhere has one slot, which hangs in an observation; the
/// cluster beside it is empty and swept. The probe fails and names the one that
/// stands still, until it answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_stands_still_fails_the_probe_beside_an_empty_one() {
    let world = World::sqlite().await;
    let hanging = slow(Duration::ZERO);
    let other = world.assign("elsewhere").await;
    let served: [(Partition, Arc<dyn Substrate>); 2] =
        [(world.partition, world.substrate.clone()), (other, hanging.clone())];
    let mut engines = Engines::new(world.node_settings.clone());
    for (partition, substrate) in &served {
        engines = engines.serving(*partition, "some cluster", Arc::clone(substrate));
    }
    let (stop, shutdown) = Shutdown::channel();
    let (mut running, mut tasks) = (Vec::new(), JoinSet::new());
    for (cluster, (partition, _)) in ["local", "elsewhere"].into_iter().zip(&served) {
        // An observation times out after three seconds, the probe after 0.9.
        let (lease, sweep) = (Duration::from_secs(9), Duration::from_millis(300));
        let (context, engines) = (world.context.clone(), engines.clone());
        let worker = "test".to_owned();
        let resources = ResourceLoop::new(context, engines, worker, *partition, lease, sweep);
        let (resources, status) = (Arc::new(resources), Arc::new(Status::new(cluster)));
        let dependencies = Dependencies {
            clock: Arc::clone(&world.context.clock),
            entropy: Arc::clone(&world.context.entropy),
            wake: resources.wake(),
        };
        let pacing = Pacing { slots: 1, ..ResourceLoop::PACING };
        let (work, shown) = (Arc::clone(&resources), Arc::clone(&status));
        tasks.spawn(drive(work, pacing, dependencies, shown, shutdown.clone()));
        running.push((cluster, resources, status));
    }
    let probe = async || {
        let mut verdicts = Vec::new();
        for (cluster, resources, status) in &running {
            verdicts.push((*cluster, resources.verdict(status).await.0));
        }
        readiness::probe(&verdicts)
    };
    let until_probe = async |ok: bool, detail: &str| {
        until(detail, async || {
            let seen = probe().await;
            if (seen.ok, seen.detail.as_str()) == (ok, detail) { Ok(()) } else { Err(seen.detail) }
        })
        .await;
    };
    until_probe(true, "local: sweeping; elsewhere: sweeping").await;
    hanging.hangs.store(true, Ordering::SeqCst);
    for handle in ["hanging", "waiting"] {
        world.declare_in("elsewhere", handle).await;
    }
    until_probe(false, "local: sweeping; elsewhere: due work cannot be claimed").await;
    hanging.hangs.store(false, Ordering::SeqCst);
    until_probe(true, "local: sweeping; elsewhere: sweeping").await;
    stop.send_replace(true);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

/// 1,000 applies of 50 ms take 50 s one by one, and 0.4 s with 128 at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_slow_actions_run_side_by_side_and_bounded() {
    const COUNT: usize = 1_000;
    let world = World::sqlite().await;
    let substrate = slow(Duration::from_millis(50));
    for number in 0..COUNT {
        world.declare(&format!("web-{number}")).await;
    }
    let started = Instant::now();
    let partitions = [(world.partition, substrate.clone() as _)];
    let running = Running::start(&world, &partitions, ResourceLoop::LEASE);
    until("all to be applied", async || {
        let applied = substrate.claims.lock().unwrap().len();
        if applied >= COUNT { Ok(()) } else { Err(format!("{applied} applied")) }
    })
    .await;
    let took = started.elapsed();
    let most = substrate.most.load(Ordering::SeqCst);
    assert!(most <= ResourceLoop::ACTIONS, "{most} actions at once");
    assert!(most > ResourceLoop::ACTIONS / 4, "only {most} actions at once");
    assert!(took < Duration::from_secs(25), "it took {took:?}");
    until("all to be recorded", async || {
        let late = all(&world).await;
        let late = late.iter().filter(|seen| seen.attempt.phase() != Phase::Enrolling).count();
        if late == 0 { Ok(()) } else { Err(format!("{late} are not Enrolling yet")) }
    })
    .await;
    assert_eq!(substrate.claims.lock().unwrap().len(), COUNT, "each was applied once");
    running.stop().await;
}

/// Actions in progress end by their deadline; rows whose action has not begun
/// are released, so that another process can claim them at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_finishes_what_was_begun_and_gives_back_the_rest() {
    const COUNT: usize = 300;
    let world = World::sqlite().await;
    let substrate = slow(Duration::from_millis(500));
    for number in 0..COUNT {
        world.declare(&format!("web-{number}")).await;
    }
    let running =
        Running::start(&world, &[(world.partition, substrate.clone() as _)], ResourceLoop::LEASE);
    until("actions under way", async || {
        let now = substrate.under_way.load(Ordering::SeqCst);
        if now > 0 { Ok(()) } else { Err("none".to_owned()) }
    })
    .await;
    let took = running.stop().await;
    assert!(took < Duration::from_secs(10), "it took {took:?} to stop");
    assert_eq!(substrate.under_way.load(Ordering::SeqCst), 0, "nothing was abandoned");
    let applied = substrate.claims.lock().unwrap().len();
    assert!((1..COUNT).contains(&applied), "{applied} were begun");
    for seen in all(&world).await {
        let begun = substrate.inner.object(seen.attempt.xr_name()).is_some();
        // A claim that was not released would block its row for the rest of the lease.
        let within = if begun { Duration::from_secs(5) } else { Duration::ZERO };
        let given_back = seen.due_at.is_some_and(|due| due <= seen.now.plus(within));
        assert!(given_back, "begun {begun}, due {:?}, now {:?}", seen.due_at, seen.now);
        assert!(seen.blockers.is_empty(), "and nobody's fault: {:?}", seen.blockers);
    }
}
