//! A row without a lane, as a replica of an older version writes it: nobody
//! claims it, and the next boot of a replica that serves its project takes it in.

use slipway_core::ids::{Lane, ProvisionedResourceId};

use super::worker::LEASE;
use super::world::World;
use crate::ports::Stores;

/// `strip` must take the lane of this attempt away in the database itself.
pub async fn stray_row(store: Stores, strip: impl AsyncFnOnce(ProvisionedResourceId)) {
    let world = World::new(store).await;
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    strip(declared.attempt).await;
    assert_eq!(world.snapshot(declared.attempt).await.attempt.lane(), None);
    let claimed = world.store.broker.attempt_claim("suite", world.lane, 10, LEASE).await;
    assert_eq!(claimed.expect("a claim"), [], "it is in no lane");
    let overdue = world.store.broker.lane_list_overdue().await.expect("an answer");
    assert!(overdue.iter().any(|found| found.lane.is_none()), "but it is seen: {overdue:?}");

    let other = Lane::new(world.uuid());
    assert_eq!(
        world.store.broker.attempt_wake_all(other).await.expect("a wake"),
        0,
        "it lives elsewhere"
    );
    assert_eq!(world.store.broker.attempt_wake_all(world.lane).await.expect("a wake"), 1);
    assert_eq!(world.snapshot(declared.attempt).await.attempt.lane(), Some(world.lane));
    assert!(world.claim(declared.attempt).await.is_some(), "it is worked on again");
}
