//! Races of renewal: with the release of the same claim, and with a claim that
//! takes over an expired lease.

use std::sync::Arc;
use std::time::Duration;

use slipway_core::commit::Recheck;

use super::races::at_once;
use super::worker::{LEASE, released};
use super::world::World;

/// In either order, nobody has a claim on the row afterwards.
pub(super) async fn renew_with_release(world: &Arc<World>) {
    let mark = world.mark().await;
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let claimed = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (renewed, given_back) = at_once(
        async move { a.store.broker.attempt_renew("suite", &[claimed], LEASE).await },
        async move { b.store.broker.attempt_release(&[released(claimed, Recheck::Never)]).await },
    )
    .await;
    renewed.expect("a renewal");
    given_back.expect("a release");
    let due = world.snapshot(declared.attempt).await.due_at;
    assert_eq!(due, None, "a renewal that comes late does not bring it back");
    world.wake(declared.attempt).await.expect("a wake");
    let again = world.claim(declared.attempt).await.expect("nobody holds it");
    world
        .store
        .broker
        .attempt_release(&[released(again, Recheck::Never)])
        .await
        .expect("a release");
    world.check(mark, declared, "renew with release").await;
}

/// An expired lease is either renewed or taken over, never both.
pub(super) async fn renew_with_takeover(world: &Arc<World>) {
    let mark = world.mark().await;
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let late = world.claim_with_lease(declared.attempt, Duration::ZERO).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (renewed, taken) = at_once(
        async move { a.store.broker.attempt_renew("suite", &[late], LEASE).await },
        async move { b.store.broker.attempt_claim("another", b.partition, 10_000, LEASE).await },
    )
    .await;
    let (renewed, taken) = (renewed.expect("a renewal"), taken.expect("a claim"));
    let mine = |taken: &&crate::broker::port::Claimed| taken.id == declared.attempt;
    let current = match (renewed.first(), taken.iter().find(mine)) {
        (Some(_), None) => late,
        (None, Some(taken)) => *taken,
        both => panic!("exactly one of two must have it: {both:?}"),
    };
    assert_eq!(world.snapshot(declared.attempt).await.claim_token, current.claim_token);
    let mut releases: Vec<_> = taken.iter().map(|one| released(*one, Recheck::Never)).collect();
    releases.push(released(current, Recheck::Never));
    releases.sort_by_key(|release| release.subject);
    releases.dedup_by_key(|release| release.subject);
    world.store.broker.attempt_release(&releases).await.expect("a release");
    world.check(mark, declared, "renew with takeover").await;
}
