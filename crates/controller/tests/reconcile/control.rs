//! The loop under a mode that does not act, and the permits before its actions.

use std::sync::Arc;
use std::time::Duration;

use slipway_app::broker::converge::Engines;
use slipway_app::nodes::node;
use slipway_app::operations::control;
use slipway_controller::driver::Loop;
use slipway_controller::resources::ResourceLoop;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::operations::control::Mode;
use slipway_durable::{Lease, Moment};

use crate::world::World;

async fn freeze(world: &World) {
    let hour = Duration::from_secs(3_600);
    control::freeze(&world.context, &world.caller, hour, "test").await.unwrap();
}

async fn unfreeze(world: &World) {
    control::unfreeze(&world.context, &world.caller, "test").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_loop_observes_enrols_ends_drains_and_begins_none() {
    for world in World::each("a_frozen_loop_observes").await {
        // One resource about to enrol, one asked to drain, one settled.
        let enrolling = world.declare("enrolling").await;
        world.run_until_phase(enrolling, Phase::Enrolling).await;
        let draining = world.ready("draining").await;
        world.delete(draining).await;
        let asked = world
            .run_until(draining, "a drain request", |seen| {
                seen.node.as_ref().is_some_and(|node| node.drain.is_some())
            })
            .await;
        let settled = world.ready("settled").await;
        freeze(&world).await;
        let before = world.substrate.journal();

        let token = world.token(&world.name(enrolling).await);
        world.enrol(&token, 7).await.unwrap();
        world.run_until_phase(enrolling, Phase::Ready).await;
        let found = asked.node.unwrap();
        node::acknowledge_drain(&world.context, found.id, found.drain.unwrap().id).await.unwrap();
        let held = world.run_until_blocked(draining, BlockerCode::Frozen).await;
        assert_eq!(held.blockers[0].evidence["action"], "delete");

        let fresh = world.declare("fresh").await;
        let held = world.run_until_blocked(fresh, BlockerCode::Frozen).await;
        assert_eq!(held.attempt.phase(), Phase::Pending);
        assert!(held.token.is_none(), "no token is minted that nothing will carry");
        world.delete(settled).await;
        let held = world.run_until_blocked(settled, BlockerCode::Frozen).await;
        assert_eq!(held.blockers[0].evidence["action"], "drain");
        assert!(held.node.unwrap().drain.is_none(), "the node is left to its work");
        // Lost outside: the phase follows the observation, and nothing is made.
        world.substrate.remove(&world.name(enrolling).await);
        let lost = world.run_until_blocked(enrolling, BlockerCode::Frozen).await;
        assert_eq!(lost.attempt.phase(), Phase::Pending);
        assert!(lost.node.unwrap().is_registered(), "its registration is not touched either");
        assert_eq!(world.substrate.journal(), before, "nothing outside was changed");

        unfreeze(&world).await;
        world.run_until_phase(draining, Phase::Deleted).await;
        let going = world.run_until_phase(fresh, Phase::Enrolling).await;
        assert!(going.blockers.is_empty(), "{:?}", going.blockers);
        world.run_until_phase(enrolling, Phase::Enrolling).await;
        world.acknowledge(settled).await;
        world.run_until_phase(settled, Phase::Deleted).await;
    }
}

/// A withheld resource is not polled by its age, costs no write while nothing
/// changes, and continues at once when the freeze ends.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_freeze_withholds_waits_for_its_end_and_not_for_time() {
    const SWEEP: Duration = Duration::from_secs(600);
    const LEASE: Duration = Duration::from_secs(30);
    for world in World::each("what_a_freeze_withholds").await {
        let engines = Engines::new(world.node_settings.clone());
        let engines = engines.serving(world.partition, "local", Arc::clone(&world.substrate) as _);
        let (context, worker) = (world.context.clone(), "test".to_owned());
        let resources = ResourceLoop::new(context, engines, worker, world.partition, LEASE, SWEEP);
        let round = async || {
            let claimed = world.claim_when_due(&resources).await;
            let errors = resources.work(claimed, Lease::new(Moment::now(), LEASE)).await;
            assert_eq!(errors, Vec::<String>::new());
        };
        freeze(&world).await;
        let id = world.declare("web").await;
        round().await;
        let first = world.get(id).await;
        assert_eq!(first.blockers[0].code, BlockerCode::Frozen);
        let wait = |seen: &ResourceSnapshot| seen.due_at.unwrap().since(seen.now);
        assert!(wait(&first) > SWEEP / 2, "{:?}", wait(&first));

        // As the sweep does.
        world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
        round().await;
        let second = world.get(id).await;
        assert!(wait(&second) > SWEEP * 2, "{:?}", wait(&second));
        assert_eq!(second.blockers[0].since, first.blockers[0].since);
        assert_eq!(second.attempt.revision(), first.attempt.revision(), "nothing was written");
        assert!(resources.claim(50).await.unwrap().is_empty());

        unfreeze(&world).await;
        round().await;
        assert!(world.substrate.object(&world.name(id).await).is_some(), "it was made at once");
        assert!(world.get(id).await.blockers.is_empty());
    }
}

/// The condition that `freeze --wait` waits for.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_acknowledges_a_mode_when_nothing_older_is_under_way() {
    for world in World::each("a_replica_acknowledges").await {
        let (store, permits) = (&world.context.stores, world.resources.permits());
        assert_eq!(permits.acknowledged(), None, "it has not read the mode yet");
        let acting = permits.read(store).await.unwrap();
        assert_eq!(permits.acknowledged(), Some(acting.revision));
        let pass = permits.enter(store).await.unwrap().expect("acting");

        freeze(&world).await;
        let frozen = permits.read(store).await.unwrap();
        assert!(frozen.revision > acting.revision);
        assert_eq!(permits.acknowledged(), Some(acting.revision), "an action is under way");
        let closed = permits.enter(store).await.unwrap().expect_err("frozen");
        assert!(matches!(closed, Mode::Frozen(_)), "{closed:?}");
        drop(pass);
        assert_eq!(permits.acknowledged(), Some(frozen.revision));

        unfreeze(&world).await;
        permits.read(store).await.unwrap();
        assert!(permits.enter(store).await.unwrap().is_ok());
    }
}
