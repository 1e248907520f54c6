//! Renewal of claims.

use std::time::Duration;

use slipway_core::commit::Recheck;

use crate::broker::port::Claimed;
use crate::testing::worker::{LEASE, released};
use crate::testing::world::{Declared, World};

async fn declared(world: &World) -> Declared {
    world.declare(&world.handle()).await.expect("a declaration")
}

/// Renews these claims as `worker`; returns those renewed, in order.
async fn renew(world: &World, worker: &str, claims: &[Claimed]) -> Vec<Claimed> {
    let renewed = world.store.broker.attempt_renew(worker, claims, LEASE).await.expect("a renewal");
    claims.iter().copied().filter(|claimed| renewed.contains(&claimed.id)).collect()
}

pub(super) async fn a_renewed_claim_lasts_longer(world: &World) {
    world.park_all().await;
    let (first, second) = (declared(world).await, declared(world).await);
    assert_eq!(renew(world, "suite", &[]).await, []);
    // Expires at once, and nobody has taken it over yet.
    let short = world
        .store
        .broker
        .attempt_claim("suite", world.partition, 10, Duration::ZERO)
        .await
        .expect("a claim");
    assert_eq!(short.len(), 2);
    let before = world.snapshot(first.attempt).await;
    assert_eq!(renew(world, "suite", &short).await, short);
    for declared in [first, second] {
        let after = world.snapshot(declared.attempt).await;
        let left = after.due_at.expect("the end of its lease").since(after.now);
        assert!(left > LEASE / 2, "{left:?} are left");
        assert!(world.claim(declared.attempt).await.is_none(), "it is held");
    }
    let after = world.snapshot(first.attempt).await;
    assert_eq!(after.claim_token, before.claim_token, "it is the same claim");
    assert_eq!(after.attempt.revision(), before.attempt.revision(), "and no write of the row");
    let given_back: Vec<_> = short.iter().map(|held| released(*held, Recheck::Never)).collect();
    world.store.broker.attempt_release(&given_back).await.expect("a release");
}

pub(super) async fn a_stale_claim_is_not_renewed(world: &World) {
    let declared = declared(world).await;
    let late = world.claim_with_lease(declared.attempt, Duration::ZERO).await;
    let current = world.claim_with_lease(declared.attempt, Duration::ZERO).await;
    assert_ne!(late.claim_token, current.claim_token);
    assert_eq!(renew(world, "suite", &[late]).await, [], "its successor has it");
    assert_eq!(renew(world, "somebody else", &[current]).await, [], "it is not his");
    let next = world.claim_with_lease(declared.attempt, LEASE).await;
    assert_eq!(next.claim_token.0, current.claim_token.0 + 1, "nothing was prolonged");
    // A lost claim does not affect the others of the call.
    assert_eq!(renew(world, "suite", &[late, next]).await.last(), Some(&next));
    world.store.broker.attempt_release(&[released(next, Recheck::Never)]).await.expect("a release");
}

/// A release does not change the token.
pub(super) async fn a_claim_given_back_is_not_renewed(world: &World) {
    let declared = declared(world).await;
    let claimed = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    world
        .store
        .broker
        .attempt_release(&[released(claimed, Recheck::Never)])
        .await
        .expect("a release");
    assert_eq!(renew(world, "suite", &[claimed]).await, []);
    assert_eq!(world.snapshot(declared.attempt).await.due_at, None, "it stays settled");
    world.wake(declared.attempt).await.expect("a wake");
    let again = world.claim(declared.attempt).await.expect("nobody holds it");
    world
        .store
        .broker
        .attempt_release(&[released(again, Recheck::Never)])
        .await
        .expect("a release");
}

pub(super) async fn a_wake_outlives_a_renewal(world: &World) {
    let declared = declared(world).await;
    let claimed = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    world.wake(declared.attempt).await.expect("a wake");
    assert_eq!(renew(world, "suite", &[claimed]).await, [claimed]);
    assert!(world.claim(declared.attempt).await.is_none(), "a wake does not break a lease");
    world
        .store
        .broker
        .attempt_release(&[released(claimed, Recheck::Never)])
        .await
        .expect("a release");
    let again = world.claim(declared.attempt).await.expect("the wake was kept");

    // Woken after its lease expired and before anybody took it over.
    world
        .store
        .broker
        .attempt_release(&[released(again, Recheck::Never)])
        .await
        .expect("a release");
    let short = world.claim_with_lease(declared.attempt, Duration::ZERO).await;
    world.wake(declared.attempt).await.expect("a wake");
    assert_eq!(renew(world, "suite", &[short]).await, [short]);
    world
        .store
        .broker
        .attempt_release(&[released(short, Recheck::Never)])
        .await
        .expect("a release");
    let again = world.claim(declared.attempt).await.expect("the wake was kept");
    world
        .store
        .broker
        .attempt_release(&[released(again, Recheck::Never)])
        .await
        .expect("a release");
}
