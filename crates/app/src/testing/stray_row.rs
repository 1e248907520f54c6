//! A row without a partition, as a replica of an older version writes it:
//! nobody claims it, and the next boot of a replica that serves its project
//! adopts it.

use slipway_core::ids::{Partition, ProvisionedResourceId};

use super::worker::LEASE;
use super::world::World;
use crate::ports::Stores;

/// `strip` must remove the partition of this attempt in the database itself.
pub async fn stray_row(store: Stores, strip: impl AsyncFnOnce(ProvisionedResourceId)) {
    let world = World::new(store).await;
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    strip(declared.attempt).await;
    assert_eq!(world.snapshot(declared.attempt).await.attempt.partition(), None);
    let claimed = world.store.broker.attempt_claim("suite", world.partition, 10, LEASE).await;
    assert_eq!(claimed.expect("a claim"), [], "it is in no partition");
    let overdue = world.store.broker.partition_list_overdue().await.expect("an answer");
    assert!(overdue.iter().any(|found| found.partition.is_none()), "but it is seen: {overdue:?}");

    let other = Partition::new(world.uuid());
    assert_eq!(
        world.store.broker.attempt_wake_all(other).await.expect("a wake"),
        0,
        "it lives elsewhere"
    );
    assert_eq!(world.store.broker.attempt_wake_all(world.partition).await.expect("a wake"), 1);
    assert_eq!(world.snapshot(declared.attempt).await.attempt.partition(), Some(world.partition));
    assert!(world.claim(declared.attempt).await.is_some(), "it is worked on again");
}
