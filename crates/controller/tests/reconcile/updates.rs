//! Updates and the loop: when a change of what is declared reaches the substrate.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_app::broker::update::{self, Changes};
use slipway_app::operations::control;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::ResourceId;
use slipway_core::precondition::Expected;

use crate::simulated::Behaviour;
use crate::world::World;

async fn update(world: &World, id: ResourceId, size: i64) {
    let parameters = [("size".to_owned(), json!(size))].into();
    let changes = Changes { parameters, ..Changes::default() };
    let (context, caller) = (&world.context, &world.caller);
    update::update(context, caller, id, changes, Expected::Any).await.unwrap();
}

async fn until_applied(world: &World, id: ResourceId, size: i64) {
    let applied = |seen: &ResourceSnapshot| seen.update_pending_since().is_none();
    world.run_until(id, "the update to reach the substrate", applied).await;
    assert_eq!(size_of(world, id).await, size);
}

async fn size_of(world: &World, id: ResourceId) -> Value {
    let object = world.substrate.object(&world.name(id).await).unwrap().object;
    object["spec"]["parameters"]["size"].clone()
}

/// Recorded at once, applied when the loop may act and can read; never lost, and never undone
/// by an older apply that lands late.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_waits_for_what_holds_the_loop_and_is_applied_then() {
    let up = Behaviour { comes_up: true, ..Behaviour::default() };
    for world in World::each("an_update_waits").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        let older = world.substrate.object(&name).unwrap();

        let hour = Duration::from_secs(3_600);
        control::freeze(&world.context, &world.caller, hour, "test").await.unwrap();
        update(&world, id, 1).await;
        let held = world.run_until_blocked(id, BlockerCode::Frozen).await;
        assert!(held.update_pending_since().is_some());
        assert_eq!((held.attempt.phase(), size_of(&world, id).await), (Phase::Ready, Value::Null));
        control::unfreeze(&world.context, &world.caller, "test").await.unwrap();
        until_applied(&world, id, 1).await;

        world.substrate.behave(Behaviour { unreadable: true, ..up });
        update(&world, id, 2).await;
        let blind = world.run_until_blocked(id, BlockerCode::SubstrateUnknown).await;
        assert!(blind.update_pending_since().is_some());
        world.substrate.behave(Behaviour { apply_fails: true, ..up });
        let failing = world.run_until_blocked(id, BlockerCode::ApplyFailed).await;
        assert_eq!(failing.update_pending_since(), blind.update_pending_since());
        world.substrate.behave(up);
        until_applied(&world, id, 2).await;

        // The phase goes back as observed, and returns.
        world.substrate.behave(Behaviour::default());
        update(&world, id, 3).await;
        world.substrate.change(&name, |object| object.ready = false);
        world.run_until_phase(id, Phase::Provisioning).await;
        until_applied(&world, id, 3).await;
        world.substrate.change(&name, |object| object.ready = true);
        world.run_until_phase(id, Phase::Ready).await;

        world.substrate.change(&name, |object| object.object = older.object.clone());
        assert_eq!(size_of(&world, id).await, Value::Null, "it landed");
        let attempt = world.get(id).await.attempt.id();
        world.context.stores.broker.attempt_wake(&[attempt]).await.unwrap();
        while size_of(&world, id).await != 3 {
            world.round().await;
        }
    }
}
