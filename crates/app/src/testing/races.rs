//! Races with a known outcome: who may win, what the loser gets, and the state afterwards.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use slipway_core::commit::Recheck;
use slipway_core::nodes::node::DeregisteredHow;
use slipway_core::{ErrorKind, Phase};
use tokio::sync::Barrier;

use super::worker::{LEASE, released};
use super::world::{World, refused};
use super::{
    access, batch_races, catalog, deletion_races, installed_keys, mesh, pairs, purges,
    renewal_races, rollouts, surges, updates,
};
use crate::ports::Stores;
use crate::ports::store::{Error, Page};

/// The race half: each race `rounds` times, then every pair of operations once
/// in each stage (220 rounds).
pub async fn races(store: Stores, rounds: u32) {
    let world = Arc::new(World::new(store).await);
    for _ in 0..rounds {
        seed_with_seed(&world).await;
        declare_with_declare(&world).await;
        enrol_with_enrol_by_another_key(&world).await;
        enrol_with_enrol_by_the_same_key(&world).await;
        enrol_with_delete(&world).await;
        delete_with_delete(&world).await;
        acknowledge_with_force(&world).await;
        tick_with_delete(&world).await;
        abandon_with_abandon(&world).await;
        abandon_with_the_tick_that_can_read_again(&world).await;
        Box::pin(tick_with_tick_of_the_next_claim(&world)).await;
        claim_with_claim(&world).await;
        wake_with_release(&world).await;
        renewal_races::renew_with_release(&world).await;
        renewal_races::renew_with_takeover(&world).await;
        last_tick_with_declare_of_the_handle(&world).await;
        relay_with_relay(&world).await;
        batch_races::batch_with_batch_of_the_same_rows(&world).await;
        batch_races::batch_with_deletes_of_its_rows(&world).await;
        mesh::enrol_with_enrol_and_leave_of_the_same_mesh(&world).await;
        mesh::enrol_with_another_mesh(&world).await;
        mesh::enrol_with_enrol_of_the_same_key(&world).await;
        mesh::enrol_with_enrol_of_the_same_nonce(&world).await;
        mesh::enrol_with_enrol_into_an_empty_mesh(&world).await;
        mesh::enrol_with_enrol_of_the_last_address(&world).await;
        mesh::enrol_with_a_refused_enrol_of_the_last_address(&world).await;
        catalog::races(&world).await;
        deletion_races::races(&world).await;
        purges::races(&world).await;
        updates::races(&world).await;
        surges::races(&world).await;
        rollouts::races(&world).await;
        access::races(&world).await;
        installed_keys::races(&world).await;
    }
    pairs::every_pair(&world).await;
}

/// Runs both concurrently.
pub(super) async fn at_once<A, B>(
    first: impl Future<Output = A> + Send + 'static,
    second: impl Future<Output = B> + Send + 'static,
) -> (A, B)
where
    A: Send + 'static,
    B: Send + 'static,
{
    let barrier = Arc::new(Barrier::new(2));
    let other = Arc::clone(&barrier);
    let first = tokio::spawn(async move {
        barrier.wait().await;
        first.await
    });
    let second = tokio::spawn(async move {
        other.wait().await;
        second.await
    });
    (first.await.expect("no panic"), second.await.expect("no panic"))
}

/// Sorts two outcomes of which exactly one must be a success.
pub(super) fn one_winner<T: std::fmt::Debug>(
    (first, second): (Result<T, Error>, Result<T, Error>),
) -> (T, ErrorKind) {
    match (first, second) {
        (Ok(won), lost @ Err(_)) | (lost @ Err(_), Ok(won)) => (won, refused(lost)),
        both => panic!("exactly one of two must win: {both:?}"),
    }
}

async fn seed_with_seed(world: &Arc<World>) {
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let outcome = at_once(async move { a.store.operations.seed(&a.mk_seed()).await }, async move {
        b.store.operations.seed(&b.mk_seed()).await
    })
    .await;
    assert!(matches!(&outcome, (Ok(a), Ok(b)) if a == b), "{outcome:?}");
}

async fn declare_with_declare(world: &Arc<World>) {
    let mark = world.mark().await;
    let handle = world.handle();
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (of_a, of_b) = (handle.clone(), handle.clone());
    let outcome =
        at_once(async move { a.declare(&of_a).await }, async move { b.declare(&of_b).await }).await;
    let (declared, lost) = one_winner(outcome);
    assert_eq!(lost, ErrorKind::HandleTaken);
    world.check(mark, declared, "declare with declare").await;
}

async fn enrol_with_enrol_by_another_key(world: &Arc<World>) {
    let mark = world.mark().await;
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let outcome = at_once(async move { a.enrol(token, a.public_key()).await }, async move {
        b.enrol(token, b.public_key()).await
    })
    .await;
    let (node, lost) = one_winner(outcome);
    assert_eq!(lost, ErrorKind::TokenConsumed);
    let snapshot = world.snapshot(declared.attempt).await;
    assert_eq!(snapshot.node.map(|node| node.id), Some(node));
    let consumed = snapshot.token.and_then(|token| token.consumed).map(|consumed| consumed.node_id);
    assert_eq!(consumed, Some(node));
    world.check(mark, declared, "enrol with enrol by another key").await;
}

async fn enrol_with_enrol_by_the_same_key(world: &Arc<World>) {
    let mark = world.mark().await;
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    let key = world.public_key();
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let outcome =
        at_once(async move { a.enrol(token, key).await }, async move { b.enrol(token, key).await })
            .await;
    let (Ok(first), Ok(second)) = outcome else { panic!("both are answered: {outcome:?}") };
    assert_eq!(first, second, "the same node is answered again");
    world.check(mark, declared, "enrol with enrol by the same key").await;
}

async fn enrol_with_delete(world: &Arc<World>) {
    let mark = world.mark().await;
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (enrolled, deleted) =
        at_once(async move { a.enrol(token, a.public_key()).await }, async move {
            b.delete(declared.resource).await
        })
        .await;
    deleted.expect("a deletion is always accepted");
    let snapshot = world.snapshot(declared.attempt).await;
    let token = snapshot.token.expect("the token is still recorded");
    match enrolled {
        Ok(node) => {
            assert_eq!(snapshot.node.map(|node| node.id), Some(node));
            assert!(token.consumed.is_some() && token.revoked_at.is_none());
        }
        Err(_) => {
            assert_eq!(refused(enrolled), ErrorKind::NotEnrolling);
            assert!(snapshot.node.is_none(), "a refusal registers nobody");
            assert!(token.consumed.is_none() && token.revoked_at.is_some());
        }
    }
    world.check(mark, declared, "enrol with delete").await;
}

async fn delete_with_delete(world: &Arc<World>) {
    let mark = world.mark().await;
    let (declared, _) = world.ready().await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let outcome = at_once(async move { a.delete(declared.resource).await }, async move {
        b.delete(declared.resource).await
    })
    .await;
    let (Ok(first), Ok(second)) = outcome else { panic!("both are accepted: {outcome:?}") };
    assert_eq!(first, second, "the second gets the deletion of the first");
    world.check(mark, declared, "delete with delete").await;
}

async fn acknowledge_with_force(world: &Arc<World>) {
    let mark = world.mark().await;
    let (declared, node, drain) = world.draining().await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (acknowledged, forced) =
        at_once(async move { a.acknowledge(node, drain).await }, async move {
            b.force(declared.resource).await
        })
        .await;
    let snapshot = world.snapshot(declared.attempt).await;
    let node = snapshot.node.expect("the node is on record");
    assert!(node.key_hash.is_none(), "its key is revoked");
    let how = node.deregistration.map(|deregistration| deregistration.how);
    match (acknowledged, forced) {
        (Ok(()), forced) => {
            assert_eq!(refused(forced), ErrorKind::NothingToForce);
            assert_eq!(how, Some(DeregisteredHow::Acknowledged));
        }
        (acknowledged, Ok(())) => {
            assert_eq!(refused(acknowledged), ErrorKind::NodeNotFound);
            assert_eq!(how, Some(DeregisteredHow::Forced));
        }
        both => panic!("one of two must win: {both:?}"),
    }
    world.check(mark, declared, "acknowledge with force").await;
}

/// In either order, the resource is leaving afterwards.
async fn tick_with_delete(world: &Arc<World>) {
    let mark = world.mark().await;
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    world.enrol(token, world.public_key()).await.expect("an enrolment");
    let claimed = world.claim_now(declared.attempt).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (ticked, deleted) =
        at_once(
            async move { a.tick(claimed).await },
            async move { b.delete(declared.resource).await },
        )
        .await;
    deleted.expect("a deletion is always accepted");
    if ticked.is_err() {
        assert_eq!(refused(ticked), ErrorKind::RevisionStale);
    }
    let phase = world.snapshot(declared.attempt).await.attempt.phase();
    assert!(phase.is_deletion(), "{phase} is out of the deletion phases");
    world.check(mark, declared, "tick with delete").await;
    assert!(
        world.claim(declared.attempt).await.is_some(),
        "what was deleted during a tick is due again"
    );
}

/// To ask twice is to ask once: one event, one record of each kind.
async fn abandon_with_abandon(world: &Arc<World>) {
    let mark = world.mark().await;
    let (declared, node) = world.lost().await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (first, second) =
        at_once(async move { a.abandon(declared).await }, async move { b.abandon(declared).await })
            .await;
    first.expect("it is abandoned");
    second.expect("it is abandoned");
    let gone = world.snapshot(declared.attempt).await;
    let left = gone.node.expect("the node is on record");
    assert_eq!((left.id, left.is_registered()), (node, false));
    assert_eq!(gone.due_at, None, "nothing is left to do");
    world.check(mark, declared, "abandon with abandon").await;
}

/// The loop reads the substrate again while a person abandons it. In either order it ends
/// in order or is abandoned; the worker that lost its claim writes nothing afterwards.
async fn abandon_with_the_tick_that_can_read_again(world: &Arc<World>) {
    let mark = world.mark().await;
    let (declared, _) = world.lost().await;
    let claimed = world.claim_now(declared.attempt).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (ticked, abandoned) =
        at_once(async move { a.tick(claimed).await }, async move { b.abandon(declared).await })
            .await;
    let gone = world.snapshot(declared.attempt).await;
    match (ticked, abandoned) {
        // Its record cleared the blocker, and the deletion goes on.
        (Ok(()), Err(refusal)) => {
            assert_eq!(refused::<()>(Err(refusal)), ErrorKind::NotAbandonable);
            assert_eq!(gone.attempt.abandoned_at(), None);
        }
        (ticked @ Err(_), Ok(())) => {
            assert!(gone.attempt.abandoned_at().is_some());
            let kind = refused(ticked);
            let lost = [ErrorKind::RevisionStale, ErrorKind::ClaimLost];
            assert!(lost.contains(&kind), "{kind}");
        }
        both => panic!("one of two must win: {both:?}"),
    }
    world.check(mark, declared, "abandon with a tick").await;
}

/// A worker whose lease expired and its successor: only the successor commits.
async fn tick_with_tick_of_the_next_claim(world: &Arc<World>) {
    let mark = world.mark().await;
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    world.enrol(token, world.public_key()).await.expect("an enrolment");
    let late = world.claim_with_lease(declared.attempt, Duration::ZERO).await;
    let current = world.claim_with_lease(declared.attempt, LEASE).await;
    assert!(current.claim_token > late.claim_token);
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let both = at_once(async move { a.tick(late).await }, async move { b.tick(current).await });
    let (late, current) = Box::pin(both).await;
    current.expect("the holder of the claim commits");
    assert_eq!(refused(late), ErrorKind::ClaimLost);
    assert_eq!(world.snapshot(declared.attempt).await.attempt.phase(), Phase::Ready);
    world.check(mark, declared, "tick with tick of the next claim").await;
}

async fn claim_with_claim(world: &Arc<World>) {
    let mut expected = Vec::new();
    for _ in 0..4 {
        let handle = world.handle();
        expected.push(world.declare(&handle).await.expect("a declaration").attempt);
    }
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (first, second) = at_once(
        async move { a.store.broker.attempt_claim("a", a.partition, 100, LEASE).await },
        async move { b.store.broker.attempt_claim("b", b.partition, 100, LEASE).await },
    )
    .await;
    let mut claimed = first.expect("a claim");
    claimed.extend(second.expect("a claim"));
    // One of the two may have skipped a row that the other had locked and then
    // did not claim; the next claim gets it.
    claimed.extend(
        world.store.broker.attempt_claim("c", world.partition, 100, LEASE).await.expect("a claim"),
    );
    for attempt in expected {
        let times = claimed.iter().filter(|claimed| claimed.id == attempt).count();
        assert_eq!(times, 1, "{attempt} was claimed {times} times");
    }
    let parked: Vec<_> =
        claimed.into_iter().map(|claimed| released(claimed, Recheck::Never)).collect();
    world.store.broker.attempt_release(&parked).await.expect("a release");
}

/// A release cannot lose a wake, whichever comes first.
async fn wake_with_release(world: &Arc<World>) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let claimed = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (woken, released) = at_once(async move { a.wake(declared.attempt).await }, async move {
        b.store.broker.attempt_release(&[released(claimed, Recheck::Never)]).await
    })
    .await;
    woken.expect("a wake");
    released.expect("a release");
    assert!(world.claim(declared.attempt).await.is_some(), "the wake was lost");
}

/// The end of a deletion frees the handle; a concurrent declaration gets it or
/// is refused because it is taken.
async fn last_tick_with_declare_of_the_handle(world: &Arc<World>) {
    let mark = world.mark().await;
    let handle = world.handle();
    let old = world.declare(&handle).await.expect("a declaration");
    world.delete(old.resource).await.expect("a deletion");
    let claimed = world.claim_now(old.attempt).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let of_b = handle.clone();
    let (ticked, declared) =
        at_once(async move { a.tick(claimed).await }, async move { b.declare(&of_b).await }).await;
    ticked.expect("nothing disturbs the tick");
    assert_eq!(world.snapshot(old.attempt).await.attempt.phase(), Phase::Deleted);
    match declared {
        Ok(declared) => {
            world.check(mark, declared, "declare with the last tick").await;
        }
        Err(_) => assert_eq!(refused(declared), ErrorKind::HandleTaken),
    }
    world.check(mark, old, "the last tick with declare").await;
}

/// Two relays during commits: each event gets one position without a gap
/// (`mark` checks that).
async fn relay_with_relay(world: &Arc<World>) {
    let before = world.mark().await;
    let mut declared = Vec::new();
    for _ in 0..3 {
        let handle = world.handle();
        declared.push(world.declare(&handle).await.expect("a declaration"));
    }
    let (a, b, c) = (Arc::clone(world), Arc::clone(world), Arc::clone(world));
    let ((first, second), third) = at_once(
        at_once(async move { a.store.events.outbox_relay(2).await }, async move {
            b.store.events.outbox_relay(2).await
        }),
        async move { c.declare(&c.handle()).await },
    )
    .await;
    let given = first.expect("a relay") + second.expect("a relay");
    assert!((3..=4).contains(&given), "{given} positions for three or four events");
    declared.push(third.expect("a declaration"));
    for declared in declared {
        world.check(before, declared, "relay with relay").await;
    }
    let page = Page { after: None, limit: 100_000 };
    let events = world.store.events.event_list(page).await.expect("a list of events");
    let mut ids: Vec<_> = events.iter().map(|event| event.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), events.len(), "an event has two positions");
}
