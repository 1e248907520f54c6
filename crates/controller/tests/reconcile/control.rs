//! The loop under a mode that does not act, and the permits before its actions.

use std::sync::Arc;
use std::time::Duration;

use slipway_app::access::port::{AuditFilter, AuditOrder};
use slipway_app::broker::converge::Engines;
use slipway_app::broker::port::ResourceKey;
use slipway_app::nodes::node;
use slipway_app::operations::control;
use slipway_app::ports::store::{Error, Page};
use slipway_controller::driver::Loop;
use slipway_controller::resources::ResourceLoop;
use slipway_core::ErrorKind;
use slipway_core::access::audit::Actor;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::prepare::{FreshToken, Read, prepare};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::BootstrapTokenId;
use slipway_core::nodes::token::{Carried, SecretHash, TokenDecision};
use slipway_core::operations::control::Mode;
use slipway_durable::{Lease, Moment};

use crate::simulated::Moment as Of;
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

/// Freezes at this moment of the next tick.
fn freeze_at(world: &World, moment: Of) {
    let (context, caller) = (world.context.clone(), world.caller.clone());
    let freeze = async move {
        let hour = Duration::from_secs(3_600);
        control::freeze(&context, &caller, hour, "test").await.unwrap();
    };
    world.substrate.interfere(moment, Box::pin(freeze));
}

async fn verbs(world: &World) -> Vec<String> {
    let filter = AuditFilter::default();
    let page = Page { after: None, limit: 500 };
    let access = &world.context.stores.access;
    let entries = access.audit_list(&filter, AuditOrder::OldestFirst, page).await.unwrap();
    let registry = |verb: &String| verb.starts_with("node.") || verb.starts_with("token.");
    entries.items.into_iter().map(|entry| entry.verb).filter(registry).collect()
}

/// The batch began before the freeze was answered: its writes to the registry come
/// after it, and are refused. The rest of the tick is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_after_a_batch_began_stops_its_registry_writes() {
    for world in World::each("a_freeze_after_a_batch_began").await {
        // A drain request.
        let leaving = world.ready("leaving").await;
        while world.round().await > 0 {}
        world.delete(leaving).await;
        let (journal, said) = (world.substrate.journal(), verbs(&world).await);
        freeze_at(&world, Of::Observe);
        let held = world.run_until_blocked(leaving, BlockerCode::Frozen).await;
        assert_eq!(held.blockers[0].evidence["action"], "drain");
        assert_eq!(held.attempt.phase(), Phase::Deregistering);
        assert!(held.node.unwrap().drain.is_none(), "nobody asks the node to drain");
        assert_eq!((world.substrate.journal(), verbs(&world).await), (journal, said));
        unfreeze(&world).await;
        world.acknowledge(leaving).await;
        world.run_until_phase(leaving, Phase::Deleted).await;

        // A minted token.
        let coming = world.declare("coming").await;
        let (journal, said) = (world.substrate.journal(), verbs(&world).await);
        freeze_at(&world, Of::Observe);
        let held = world.run_until_blocked(coming, BlockerCode::Frozen).await;
        assert_eq!(held.blockers[0].evidence["action"], "apply");
        assert!(held.token.is_none());
        assert_eq!((world.substrate.journal(), verbs(&world).await), (journal, said));
        unfreeze(&world).await;
        world.run_until_phase(coming, Phase::Enrolling).await;

        // A node whose substrate is gone, with its deregistration.
        let token = world.token(&world.name(coming).await);
        world.enrol(&token, 9).await.unwrap();
        world.run_until_phase(coming, Phase::Ready).await;
        while world.round().await > 0 {}
        world.substrate.remove(&world.name(coming).await);
        world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
        let said = verbs(&world).await;
        freeze_at(&world, Of::Observe);
        let held = world.run_until_blocked(coming, BlockerCode::Frozen).await;
        assert!(held.node.unwrap().is_registered());
        assert_eq!(held.attempt.phase(), Phase::Pending, "the phase follows what is observed");
        assert_eq!(verbs(&world).await, said);
    }
}

/// The engine asks again before its request, and shows the mode, not a failure.
#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_between_intent_and_apply_withholds_the_apply() {
    for world in World::each("a_freeze_between_intent_and_apply").await {
        let id = world.declare("web").await;
        freeze_at(&world, Of::Apply);
        let held = world.run_until_blocked(id, BlockerCode::Frozen).await;
        assert_eq!(held.blockers[0].evidence["action"], "apply");
        assert_eq!(held.failures, 0);
        assert!(world.substrate.journal().is_empty(), "nothing was sent");
        assert!(held.token.is_some(), "the intent was recorded before the freeze");
        unfreeze(&world).await;
        let going = world.run_until_phase(id, Phase::Enrolling).await;
        assert!(going.blockers.is_empty(), "{:?}", going.blockers);
    }
}

/// A replica that was stopped between its permit and its write wakes up after the
/// freeze was settled without it.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_comes_after_a_settled_freeze_is_refused() {
    for world in World::each("a_write_that_comes_after").await {
        let id = world.ready("web").await;
        while world.round().await > 0 {}
        world.delete(id).await;
        let context = world.context.clone();
        let store = context.stores.clone();
        // The stopped one got its permit; the other replica freezes, and settles.
        let stopped = world.resources.permits();
        let permit = stopped.enter(&store).await.unwrap().expect("acting");
        freeze(&world).await;
        let said = verbs(&world).await;
        let key = ResourceKey::Resource(id);
        let refused = store
            .broker
            .decide(key, &mut |snapshot: &ResourceSnapshot| {
                let read = Read::of(snapshot);
                let fresh = FreshToken {
                    id: BootstrapTokenId::new(context.entropy.uuid()),
                    hash: SecretHash::of(b"late"),
                };
                let mint =
                    TokenDecision::Mint { expires_at: snapshot.now, hard_expires_at: snapshot.now };
                let actor = Actor::new("stopped");
                prepare(snapshot, read, mint, Carried::NoObject, Some(fresh), &actor)?
                    .permitted(Some(permit.revision()))
            })
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, Error::Refused(refusal) if refusal.kind == ErrorKind::RevisionStale),
            "{refused:?}"
        );
        assert_eq!(verbs(&world).await, said);
        assert!(world.get(id).await.node.unwrap().is_registered());
    }
}
