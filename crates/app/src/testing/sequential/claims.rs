//! Claims, leases, fencing, wakes and releases.

use std::collections::BTreeSet;
use std::time::Duration;

use slipway_core::ErrorKind;
use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::commit::{Recheck, Release};
use slipway_core::ids::Partition;

use crate::broker::port::Claimed;
use crate::testing::worker::{LEASE, released};
use crate::testing::world::{Declared, World, refused};

async fn declared(world: &World) -> Declared {
    world.declare(&world.handle()).await.expect("a declaration")
}

pub(super) async fn a_claimed_attempt_is_not_claimed_again(world: &World) {
    world.park_all().await;
    assert_eq!(
        world.store.broker.attempt_overdue(world.partition).await.expect("an answer"),
        None,
        "all is parked"
    );
    let declared = declared(world).await;
    let overdue = world.store.broker.attempt_overdue(world.partition).await.expect("an answer");
    assert!(overdue.is_some(), "what waits for a claim is overdue");
    let claimed = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    assert_eq!(world.snapshot(declared.attempt).await.claim_token, claimed.claim_token);
    assert!(world.claim(declared.attempt).await.is_none());
    assert_eq!(
        world.store.broker.attempt_overdue(world.partition).await.expect("an answer"),
        None,
        "all is claimed"
    );
    world.wake(declared.attempt).await.expect("a wake");
    assert!(world.claim(declared.attempt).await.is_none(), "a wake does not break a lease");
    world.store.broker.attempt_release(&[]).await.expect("releasing nothing");
}

pub(super) async fn a_partition_is_claimed_by_itself(world: &World) {
    world.park_all().await;
    let declared = declared(world).await;
    assert_eq!(world.snapshot(declared.attempt).await.attempt.partition(), world.partition);
    let other = Partition::new(world.uuid());
    assert_eq!(world.store.broker.attempt_overdue(other).await.expect("an answer"), None);
    assert_eq!(world.store.broker.attempt_wake_all(other).await.expect("a wake"), 0);
    let claimed =
        world.store.broker.attempt_claim("suite", other, 100, LEASE).await.expect("a claim");
    assert_eq!(claimed, [], "what lives elsewhere is not claimed here");
    let overdue = world.store.broker.partition_list_overdue().await.expect("an answer");
    let partitions: Vec<_> = overdue.iter().map(|found| found.partition).collect();
    assert_eq!(partitions, [world.partition], "what waits is seen, whoever serves it");
    assert!(!overdue[0].cluster.is_empty());
    assert!(world.claim(declared.attempt).await.is_some(), "and is left for those who serve it");
    assert_eq!(
        world.store.broker.partition_list_overdue().await.expect("an answer"),
        [],
        "all is claimed"
    );
}

pub(super) async fn a_clock_that_went_back_leaves_nothing_lying(world: &World) {
    const HOUR: Duration = Duration::from_secs(3_600);
    const JUMP: Duration = Duration::from_secs(2 * 3_600);
    world.park_all().await;
    let before = world.store.operations.database_now().await.expect("a time");
    // Rows after a jump: due in two hours, claimed for more than two hours,
    // claimed by a worker whose time is over, and claimed after the jump.
    let waiting = declared(world).await;
    let claimed = world.claim(waiting.attempt).await.expect("it is due");
    let release = released(claimed, Recheck::After(JUMP));
    world.store.broker.attempt_release(&[release]).await.expect("a release");
    let [held, dead, fresh] = [declared(world).await, declared(world).await, declared(world).await];
    world.claim_with_lease(held.attempt, JUMP + HOUR).await;
    world.claim_with_lease(dead.attempt, HOUR).await;
    world.claim_with_lease(fresh.attempt, LEASE).await;
    // Other tests left rows that wait for deletion verification; they are pulled in too.
    let these = [waiting, held, dead, fresh].map(|declared| declared.attempt);
    let due = async || {
        let claimed = world.store.broker.attempt_claim("suite", world.partition, 100, LEASE).await;
        let claimed = claimed.expect("a claim").into_iter().map(|claimed| claimed.id);
        claimed.filter(|id| these.contains(id)).collect::<BTreeSet<_>>()
    };
    assert_eq!(due().await, BTreeSet::new());
    let pulled = world.store.operations.schedule_pull_in(JUMP, LEASE).await.expect("an answer");
    assert!(pulled >= 4, "{pulled}");
    assert_eq!(due().await, BTreeSet::from([waiting.attempt, dead.attempt]));
    assert!(world.store.operations.database_now().await.expect("a time") >= before);
}

pub(super) async fn a_claim_takes_no_more_than_it_was_asked_for(world: &World) {
    world.park_all().await;
    for _ in 0..3 {
        declared(world).await;
    }
    let first = world
        .store
        .broker
        .attempt_claim("suite", world.partition, 2, LEASE)
        .await
        .expect("a claim");
    assert_eq!(first.len(), 2);
    let second = world
        .store
        .broker
        .attempt_claim("suite", world.partition, 2, LEASE)
        .await
        .expect("a claim");
    assert_eq!(second.len(), 1);
    assert!(!first.contains(&second[0]));
}

pub(super) async fn a_lease_that_is_over_is_claimed_anew_and_fences_the_old_one(world: &World) {
    let declared = declared(world).await;
    let late = world.claim_with_lease(declared.attempt, Duration::ZERO).await;
    let current = world.claim_with_lease(declared.attempt, LEASE).await;
    assert_eq!(current.claim_token.0, late.claim_token.0 + 1);

    assert_eq!(refused(world.tick(late).await), ErrorKind::ClaimLost);
    world.store.broker.attempt_release(&[released(late, Recheck::Now)]).await.expect("a release");
    assert!(world.claim(declared.attempt).await.is_none(), "an old token releases nothing");
    let invented = Claimed { id: declared.attempt, claim_token: late.claim_token };
    world.store.broker.attempt_quarantine(invented, "nothing", None, LEASE).await.expect("a hold");
    assert!(world.snapshot(declared.attempt).await.blockers.is_empty());
    world.tick(current).await.expect("the holder commits");
}

pub(super) async fn a_wake_during_a_claim_makes_it_due_again(world: &World) {
    let declared = declared(world).await;
    let claimed = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    world.wake(declared.attempt).await.expect("a wake");
    world
        .store
        .broker
        .attempt_release(&[released(claimed, Recheck::Never)])
        .await
        .expect("a release");
    let again = world.claim(declared.attempt).await.expect("a release cannot lose a wake");
    world
        .store
        .broker
        .attempt_release(&[released(again, Recheck::Never)])
        .await
        .expect("a release");
    assert!(world.claim(declared.attempt).await.is_none(), "nothing woke it since");
}

pub(super) async fn a_release_sets_when_it_is_due_and_counts_failures(world: &World) {
    let (first, second) = (declared(world).await, declared(world).await);
    let claimed = world
        .store
        .broker
        .attempt_claim("suite", world.partition, 100, LEASE)
        .await
        .expect("a claim");
    let of = |declared: Declared| {
        *claimed.iter().find(|claimed| claimed.id == declared.attempt).expect("it was due")
    };
    let hour = Duration::from_secs(3_600);
    let releases = [
        Release { failures: 7, ..released(of(first), Recheck::After(hour)) },
        released(of(second), Recheck::Now),
    ];
    world.store.broker.attempt_release(&releases).await.expect("a release of two");
    let snapshot = world.snapshot(first.attempt).await;
    assert_eq!(snapshot.failures, 7);
    let wait = snapshot.due_at.expect("due in an hour").since(snapshot.now);
    assert!(wait > hour / 2 && wait <= hour, "due in {wait:?}");
    assert!(world.claim(first.attempt).await.is_none());
    world.wake(second.attempt).await.expect("a wake");
    assert!(world.claim(second.attempt).await.is_some());
}

pub(super) async fn a_quarantined_row_has_a_blocker_and_is_released(world: &World) {
    let declared = declared(world).await;
    let claimed = world.claim(declared.attempt).await.expect("a fresh attempt is due");
    world
        .store
        .broker
        .attempt_quarantine(claimed, "unknown phase", None, LEASE)
        .await
        .expect("a hold");
    let held = world.snapshot(declared.attempt).await;
    assert_eq!(held.blockers.len(), 1);
    assert_eq!(held.blockers[0].code, BlockerCode::RowInvalid);
    assert!(held.blockers[0].message.contains("unknown phase"));
    assert!(held.due_at.is_some_and(|due| due > held.now), "it is looked at again, later");

    let claimed = world.claim_now(declared.attempt).await;
    world
        .store
        .broker
        .attempt_quarantine(claimed, "still unknown", None, LEASE)
        .await
        .expect("a hold");
    let again = world.snapshot(declared.attempt).await;
    assert_eq!(again.blockers[0].since, held.blockers[0].since);
}

pub(super) async fn waking_all_wakes_what_is_not_settled(world: &World) {
    let (settled, open) = (declared(world).await, declared(world).await);
    world.delete(settled.resource).await.expect("a deletion");
    world.drive(settled.attempt, Phase::Deleted).await;
    let claimed = world.claim_now(open.attempt).await;
    world
        .store
        .broker
        .attempt_release(&[released(claimed, Recheck::Never)])
        .await
        .expect("a release");

    assert!(world.store.broker.attempt_wake_all(world.partition).await.expect("a wake") >= 1);
    let claimed = world
        .store
        .broker
        .attempt_claim("suite", world.partition, 1_000, LEASE)
        .await
        .expect("a claim");
    assert!(claimed.iter().any(|claimed| claimed.id == open.attempt));
    assert!(!claimed.iter().any(|claimed| claimed.id == settled.attempt));
}

pub(super) async fn a_restart_takes_back_local_claims_and_leaves_remote_ones_to_lapse(
    world: &World,
) {
    world.park_all().await;
    let broker = &world.store.broker;
    let claim = async |worker: &str, limit, lease| {
        broker.attempt_claim(worker, world.partition, limit, lease).await.expect("a claim")
    };
    let (mine, other) = (declared(world).await, declared(world).await);
    let before = claim("first life", 1, LEASE).await;
    let others = claim("somebody else", 1, LEASE).await;
    assert_eq!((before.len(), others.len()), (1, 1));

    // A start that does not take back: the rows are woken, and the lease has to end.
    let elsewhere = Partition::new(world.uuid());
    let ended = broker.attempt_reclaim("first life", elsewhere).await.expect("an answer");
    assert_eq!(ended, 0, "a claim in another partition is left to lapse");
    broker.attempt_wake_all(world.partition).await.expect("a wake");
    assert_eq!(claim("first life", 10, LEASE).await, [], "not even its own worker has it before");

    // A start that takes back.
    let ended = broker.attempt_reclaim("first life", world.partition).await.expect("an answer");
    assert_eq!(ended, 1);
    let after = claim("first life", 10, Duration::ZERO).await;
    assert_eq!(after.len(), 1, "its own is due at once, the other's is left alone");
    assert_eq!(after[0].id, before[0].id);
    assert!(
        after[0].claim_token.0 > before[0].claim_token.0 + 1,
        "the first life is fenced off before the second claims"
    );
    assert!([mine.attempt, other.attempt].contains(&after[0].id));

    let lapsed = claim("first life", 10, LEASE).await;
    assert_eq!(lapsed.len(), 1, "a lease that has ended is due by itself");
    assert_eq!(lapsed[0].claim_token.0, after[0].claim_token.0 + 1);
}
