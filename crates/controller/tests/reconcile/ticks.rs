//! Single ticks under faults of our own: a lease that runs short, work that
//! outlasts it, and faults inside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use slipway_app::broker::converge::Engines;
use slipway_app::operations::{control, explain};
use slipway_app::permits::Permits;
use slipway_app::ports::Entropy;
use slipway_controller::driver::Loop;
use slipway_controller::resources::ResourceLoop;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::ClaimToken;
use slipway_durable::{Lease, Moment};
use sqlx::{Connection as _, SqliteConnection};
use uuid::Uuid;

use crate::simulated::{Behaviour, Moment as Of, Simulated};
use crate::slow::Slow;
use crate::world::{Machine, World};

const SWEEP: Duration = Duration::from_secs(2);

fn mk_slow(action: Duration) -> Arc<Slow> {
    let inner = Arc::new(Simulated::default());
    inner.behave(Behaviour { comes_up: true, ..Behaviour::default() });
    Arc::new(Slow { inner, action, ..Slow::default() })
}

fn mk_loop(world: &World, substrate: &Arc<Slow>, lease: Duration) -> ResourceLoop {
    let engines = Engines::new(world.node_settings.clone());
    let engines = engines.serving(world.partition, "local", Arc::clone(substrate) as _);
    let worker = "test".to_owned();
    ResourceLoop::new(world.context.clone(), engines, worker, world.partition, lease, SWEEP)
}

/// Twelve actions of 400 ms one after the other outlast a lease of 3 s: without
/// renewal the later ones would be released and begun under a second claim.
#[tokio::test(flavor = "multi_thread")]
async fn work_that_outlasts_its_lease_keeps_its_claims() {
    const COUNT: usize = 12;
    for world in World::each("work_that_outlasts_its_lease").await {
        let substrate = mk_slow(Duration::from_millis(400));
        let lease = Duration::from_secs(3);
        let resources = mk_loop(&world, &substrate, lease).with_actions(1);
        for number in 0..COUNT {
            world.declare(&format!("web-{number}")).await;
        }
        let asked_before = Moment::now();
        let claimed = resources.claim(50).await.unwrap();
        assert_eq!(claimed.len(), COUNT);
        let errors = resources.work(claimed, Lease::new(asked_before, lease)).await;
        assert_eq!(errors, Vec::<String>::new());
        assert!(asked_before.elapsed() > lease, "it did outlast it");
        let claims = substrate.claims.lock().unwrap().clone();
        assert_eq!(claims, [ClaimToken(1); COUNT], "each was done under its first claim");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_about_to_end_begins_nothing_and_blames_nobody() {
    for world in World::each("a_claim_about_to_end").await {
        let substrate = mk_slow(Duration::ZERO);
        let lease = Duration::from_secs(30);
        let resources = mk_loop(&world, &substrate, lease);
        let id = world.declare("web").await;
        let claimed = resources.claim(50).await.unwrap();
        let nearly_over = Lease::new(Moment::now(), lease / 3);
        assert_eq!(resources.work(claimed, nearly_over).await, Vec::<String>::new());

        let seen = world.get(id).await;
        assert!(seen.token.is_none(), "no token was minted for an apply that was not begun");
        assert_eq!((seen.blockers.len(), seen.failures), (0, 0));
        assert!(seen.due_at.is_some_and(|due| due <= seen.now), "it is due at once");
        assert!(substrate.claims.lock().unwrap().is_empty());

        let asked_before = Moment::now();
        let claimed = resources.claim(50).await.unwrap();
        assert_eq!(claimed.len(), 1);
        resources.work(claimed, Lease::new(asked_before, lease)).await;
        assert_eq!(*substrate.claims.lock().unwrap(), [ClaimToken(2)], "the next tick acts");
    }
}

/// Requests of the earlier life may still arrive at a cluster; the local engine died
/// with the process.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_life_takes_back_local_claims_and_waits_for_remote_ones() {
    let lease = Duration::from_secs(3);
    for world in World::each("a_new_life_takes_back").await {
        let born = |engine| {
            let substrate = Arc::new(Simulated::of(engine));
            let engines = Engines::new(world.node_settings.clone());
            let engines = engines.serving(world.partition, "one", substrate);
            let (context, worker) = (world.context.clone(), "test".to_owned());
            ResourceLoop::new(context, engines, worker, world.partition, lease, SWEEP)
        };
        world.declare("web").await;
        let first = born(Engine::Local).claim(50).await.unwrap();
        assert_eq!(first.len(), 1);

        let local = born(Engine::Local);
        local.boot_sweep().await.unwrap();
        let before_second = Moment::now();
        let second = local.claim(50).await.unwrap();
        assert_eq!(second.len(), 1, "the claim of the first life is taken back");
        assert!(second[0].claim_token.0 > first[0].claim_token.0 + 1, "and fenced off");

        let remote = born(Engine::Crossplane);
        remote.boot_sweep().await.unwrap();
        let third = world.claim_when_due(&remote).await;
        assert!(before_second.elapsed() >= lease, "the claim of the second life has to lapse");
        assert_eq!(third[0].claim_token.0, second[0].claim_token.0 + 1);
    }
}

/// What was sent may still arrive. A tick that observed before would mint a token anew,
/// and a machine would come up with the old one. Neither a retry nor a new decision of
/// somebody, nor a record that was refused for it, ends the claim.
#[tokio::test(flavor = "multi_thread")]
async fn the_claim_of_an_action_without_an_answer_lapses() {
    // An action times out after one second.
    let lease = Duration::from_secs(3);
    for deleted_meanwhile in [false, true] {
        for world in World::each("an_action_without_an_answer").await {
            let substrate = mk_slow(Duration::from_secs(3_600));
            let resources = mk_loop(&world, &substrate, lease);
            let id = world.declare("web").await;
            let asked_before = Moment::now();
            let claimed = resources.claim(50).await.unwrap();
            assert_eq!(claimed.len(), 1);
            let delete = async {
                while deleted_meanwhile && substrate.under_way.load(Ordering::SeqCst) == 0 {
                    tokio::task::yield_now().await;
                }
                if deleted_meanwhile {
                    world.delete(id).await;
                }
            };
            let worked = resources.work(claimed.clone(), Lease::new(asked_before, lease));
            let (errors, ()) = tokio::join!(worked, delete);
            assert_eq!(errors, Vec::<String>::new());
            let seen = world.get(id).await;
            if deleted_meanwhile {
                assert!(seen.blockers.is_empty(), "the record was refused: {:?}", seen.blockers);
            } else {
                let [blocker] = &seen.blockers[..] else { panic!("{:?}", seen.blockers) };
                assert_eq!(blocker.code, BlockerCode::ApplyFailed);
                world.delete(id).await;
            }
            let again = world.claim_when_due(&resources).await;
            assert!(asked_before.elapsed() >= lease, "the next tick waits for the lease");
            assert_eq!(again[0].claim_token.0, claimed[0].claim_token.0 + 1);
        }
    }
}

/// Nobody knows whether the engine sent its request before it panicked.
#[tokio::test(flavor = "multi_thread")]
async fn the_claim_of_an_action_that_panicked_lapses() {
    for world in World::each("an_action_that_panicked").await {
        let substrate = mk_slow(Duration::ZERO);
        substrate.panics.store(true, Ordering::SeqCst);
        let lease = Duration::from_secs(30);
        let resources = mk_loop(&world, &substrate, lease);
        let id = world.declare("web").await;
        let claimed = resources.claim(50).await.unwrap();
        resources.work(claimed, Lease::new(Moment::now(), lease)).await;
        let seen = world.get(id).await;
        let [blocker] = &seen.blockers[..] else { panic!("{:?}", seen.blockers) };
        assert_eq!(blocker.code, BlockerCode::InternalError);
        assert!(blocker.message.contains("panicked"), "{blocker:?}");
        assert_is_claimed(&world, &resources).await;
    }
}

/// The tick of a node that stopped applies it again and requests its drain. The drain
/// needs a permit of its own; if there is none, the claim of the apply lapses all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_does_not_end_the_claim_of_an_action_without_an_answer() {
    for world in World::each("a_freeze_does_not_end").await {
        let (context, caller) = (world.context.clone(), world.caller.clone());
        let permits = world.resources.permits();
        let freeze = async move {
            let hour = Duration::from_secs(3_600);
            control::freeze(&context, &caller, hour, "test").await.unwrap();
            // As the heartbeat does.
            permits.read(&context.stores).await.unwrap();
        };
        assert_eq!(apply_and_drain(&world, freeze.boxed()).await, Vec::<String>::new());
    }
    let world = World::sqlite().await;
    let url = world.url.clone();
    let forget_the_mode = async move {
        let mut raw = SqliteConnection::connect(&url).await.unwrap();
        sqlx::query("DELETE FROM control").execute(&mut raw).await.unwrap();
        // Until the loop has to read it again.
        tokio::time::sleep(Permits::FRESH).await;
    };
    assert_eq!(apply_and_drain(&world, forget_the_mode.boxed()).await.len(), 1);
}

/// One tick, whose apply is not answered. Something happens during the apply.
async fn apply_and_drain(world: &World, meanwhile: BoxFuture<'static, ()>) -> Vec<String> {
    let id = world.ready("web").await;
    while world.round().await > 0 {}
    world.substrate.change(&world.name(id).await, |object| object.ready = false);
    world.delete(id).await;
    world.substrate.interfere(Of::Answer, meanwhile);
    let (resources, lease) = (&world.resources, Duration::from_secs(30));
    let claimed = resources.claim(50).await.unwrap();
    assert_eq!(claimed.len(), 1);
    let errors = resources.work(claimed, Lease::new(Moment::now(), lease)).await;
    assert!(world.get(id).await.node.unwrap().drain.is_none(), "nobody asks it to drain");
    assert_is_claimed(world, resources).await;
    errors
}

/// Somebody wakes the rows, and none can be claimed.
async fn assert_is_claimed(world: &World, resources: &ResourceLoop) {
    world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
    assert!(resources.claim(50).await.unwrap().is_empty(), "the claim was released");
}

/// Draws no secrets while it is broken.
#[derive(Debug)]
struct Broken(AtomicBool);

impl Entropy for Broken {
    fn uuid(&self) -> Uuid {
        Machine.uuid()
    }

    fn fill(&self, bytes: &mut [u8]) {
        let secret = bytes.len() >= 32;
        assert!(!secret || !self.0.load(Ordering::SeqCst), "the random source is broken");
        Machine.fill(bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_our_own_is_shown_and_spaced_out_and_goes_away() {
    for mut world in World::each("a_fault_of_our_own").await {
        let substrate = mk_slow(Duration::ZERO);
        let broken = Arc::new(Broken(AtomicBool::new(true)));
        world.context.entropy = Arc::clone(&broken) as _;
        let lease = Duration::from_secs(30);
        let resources = mk_loop(&world, &substrate, lease);
        let id = world.declare("web").await;
        let round = async || {
            let claimed = world.claim_when_due(&resources).await;
            resources.work(claimed, Lease::new(Moment::now(), lease)).await
        };
        let mut waits = Vec::new();
        for failures in 1..=4 {
            let errors = round().await;
            assert_eq!(errors.len(), 1, "{errors:?}");
            let seen = world.get(id).await;
            assert_eq!(seen.failures, failures);
            let [blocker] = &seen.blockers[..] else { panic!("{:?}", seen.blockers) };
            assert_eq!(blocker.code, BlockerCode::InternalError);
            assert!(blocker.message.contains("panicked"), "{blocker:?}");
            waits.push(blocker.next_retry_at.unwrap().since(seen.now));
        }
        // From 250 ms on, doubled each time up to the sweep, with a quarter of jitter.
        assert!(waits[0] <= Duration::from_millis(313), "{waits:?}");
        assert!(waits[3] > waits[0] * 2, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= SWEEP.mul_f64(1.25)), "{waits:?}");

        broken.0.store(false, Ordering::SeqCst);
        assert_eq!(round().await, Vec::<String>::new());
        let seen = world.get(id).await;
        assert_eq!((seen.blockers.len(), seen.failures), (0, 0), "{:?}", seen.blockers);
    }
}

/// An engine that panics during an observation has not proven an absence.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_panics_while_it_looks_concludes_nothing() {
    let world = World::sqlite().await;
    let substrate = mk_slow(Duration::ZERO);
    substrate.blind.store(true, Ordering::SeqCst);
    let lease = Duration::from_secs(30);
    let resources = mk_loop(&world, &substrate, lease);
    let id = world.declare("web").await;
    let claimed = world.claim_when_due(&resources).await;
    let errors = resources.work(claimed, Lease::new(Moment::now(), lease)).await;
    assert_eq!(errors, Vec::<String>::new());
    let seen = world.get(id).await;
    assert_eq!(seen.blockers[0].code, BlockerCode::SubstrateUnknown);
    assert!(seen.blockers[0].message.contains("panicked"), "{:?}", seen.blockers);
    assert!(substrate.claims.lock().unwrap().is_empty(), "nothing was applied");
}

/// Computed when it is read: no loop serves the row, so none could have written it.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_serves_is_explained() {
    for mut world in World::each("what_nobody_serves").await {
        world.context.settings.claimed_within = Duration::from_millis(50);
        world.assign("elsewhere").await;
        let id = world.declare_in("elsewhere", "web").await;
        let explained =
            async || explain::resource(&world.context, &world.caller, id).await.unwrap().blockers;
        let found = loop {
            world.round().await;
            let found = explained().await;
            if !found.is_empty() {
                break found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(found[0].code, BlockerCode::ClusterNotServed);
        assert!(found[0].message.contains("elsewhere"), "{found:?}");
        assert_eq!(world.get(id).await.attempt.phase(), Phase::Pending);
        assert!(world.get(id).await.blockers.is_empty(), "it is not stored");
    }
}
