//! Batched decisions end as each would alone, and none affects another.

use slipway_core::broker::BrokerWrite;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Recheck, Release, Write};
use slipway_core::ids::{ClaimToken, ProvisionedResourceId};
use slipway_core::{ErrorKind, Phase, Refusal};

use crate::broker::port::{Decided, ResourceKey};
use crate::ports::store::Error;
use crate::testing::worker::LEASE;
use crate::testing::world::{Declared, World, refused};

async fn declared(world: &World, count: usize) -> Vec<Declared> {
    let mut declared = Vec::with_capacity(count);
    for _ in 0..count {
        declared.push(world.declare(&world.handle()).await.expect("a declaration"));
    }
    declared
}

fn ids(declared: &[Declared]) -> Vec<ProvisionedResourceId> {
    declared.iter().map(|declared| declared.attempt).collect()
}

async fn decide(
    world: &World,
    ids: &[ProvisionedResourceId],
    mut rule: impl FnMut(&ResourceSnapshot) -> Result<Commit, Refusal> + Send,
) -> Vec<Decided> {
    let decided =
        world.store.broker.decide_many(ids, &mut rule).await.expect("the database is there");
    let answered: Vec<_> = decided.iter().map(|(id, _)| *id).collect();
    assert_eq!(answered, ids, "one answer for each, in order");
    decided
}

pub(super) async fn nothing_and_nobody_are_no_errors(world: &World) {
    decide(world, &[], |_| panic!("there is nothing to decide")).await;
    let declared = declared(world, 2).await;
    let absent = ProvisionedResourceId::new(world.uuid());
    let all = [declared[0].attempt, absent, declared[1].attempt];
    let decided = decide(world, &all, |_| Ok(Commit::default())).await;
    assert!(decided[0].1.is_ok() && decided[2].1.is_ok(), "{decided:?}");
    assert!(matches!(decided[1].1, Err(Error::NotFound { .. })), "{decided:?}");
}

/// Whole lives in batches: the same phases, histories, events and tokens as one by one.
pub(super) async fn a_batch_walks_to_ready_and_out_again(world: &World) {
    let mark = world.mark().await;
    let declared = declared(world, 5).await;
    world.drive_many(&ids(&declared), Phase::Enrolling).await;
    for declared in &declared {
        let token = world.token(declared.attempt).await;
        world.enrol(token, world.public_key()).await.expect("an enrolment");
    }
    world.drive_many(&ids(&declared), Phase::Ready).await;
    for declared in &declared {
        world.check(mark, *declared, "a batch at Ready").await;
        world.delete(declared.resource).await.expect("a deletion");
    }
    world.drive_many(&ids(&declared), Phase::Deregistering).await;
    for declared in &declared {
        let claimed = world.claim_now(declared.attempt).await;
        world.tick_many(&[claimed]).await.pop().expect("an answer").1.expect("asks for a drain");
        world.force(declared.resource).await.expect("a forced drain");
    }
    world.drive_many(&ids(&declared), Phase::Deleted).await;
    for declared in &declared {
        world.check(mark, *declared, "a batch at Deleted").await;
    }
}

pub(super) async fn a_refused_row_takes_no_other_with_it(world: &World) {
    let declared = declared(world, 3).await;
    let bad = declared[1].attempt;
    let wake = |snapshot: &ResourceSnapshot| Commit {
        wakes: vec![snapshot.attempt.id().into()],
        writes: vec![Write::Broker(BrokerWrite::ObservedReplace(
            snapshot.attempt.id(),
            serde_json::json!({ "seen": "by a batch" }),
        ))],
        ..Commit::default()
    };
    let decided = decide(world, &ids(&declared), |snapshot| {
        if snapshot.attempt.id() == bad {
            return Err(Refusal::new(ErrorKind::Forbidden, "no"));
        }
        Ok(wake(snapshot))
    })
    .await;
    for (id, outcome) in decided {
        let seen = world.snapshot(id).await.observed.is_some();
        assert_eq!(seen, id != bad, "{id}");
        match outcome {
            Ok(()) => assert_ne!(id, bad),
            refusal => assert_eq!(refused(refusal), ErrorKind::Forbidden),
        }
    }
}

/// A commit from an old snapshot, one under a lost claim and one whose event
/// was announced already: each is refused as a whole, with its own reason, and
/// the others are written.
pub(super) async fn what_no_rule_foresees_is_found_row_by_row(world: &World) {
    world.park_all().await;
    let mark = world.mark().await;
    let declared = declared(world, 4).await;
    let (good, stale, fenced, twice) = (declared[0], declared[1], declared[2], declared[3]);
    let old = world.snapshot(stale.attempt).await;
    let claimed = world.claim_now(stale.attempt).await;
    world.tick(claimed).await.expect("a tick that writes the row");
    let held = world.claim_with_lease(fenced.attempt, LEASE).await;

    let decided = decide(world, &ids(&declared), |snapshot| {
        let id = snapshot.attempt.id();
        let seen =
            Write::Broker(BrokerWrite::ObservedReplace(id, serde_json::json!({ "written": true })));
        let mut commit = Commit { writes: vec![seen], ..Commit::default() };
        if id == stale.attempt {
            commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(old.attempt.clone())));
        } else if id == fenced.attempt {
            commit.writes.push(Write::Release(Release {
                subject: id.into(),
                claim_token: ClaimToken(held.claim_token.0 - 1),
                recheck: Recheck::Now,
                failures: 9,
            }));
        } else if id == twice.attempt {
            let requested = slipway_core::broker::event::REQUESTED;
            let announced = slipway_core::broker::event::announce(
                requested,
                &snapshot.attempt,
                snapshot.attempt.revision(),
                snapshot.now,
            );
            commit.events.push(announced);
        }
        Ok(commit)
    })
    .await;
    let kinds = decided.into_iter().map(|(id, outcome)| (id, outcome.map_err(kind)));
    let expected = [
        (good.attempt, Ok(())),
        (stale.attempt, Err(ErrorKind::RevisionStale)),
        (fenced.attempt, Err(ErrorKind::ClaimLost)),
        (twice.attempt, Err(ErrorKind::RevisionStale)),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    let written = serde_json::json!({ "written": true });
    for declared in declared {
        let snapshot = world.snapshot(declared.attempt).await;
        let is_written = snapshot.observed.as_ref() == Some(&written);
        assert_eq!(is_written, declared.attempt == good.attempt, "{}", declared.attempt);
        assert_ne!(snapshot.failures, 9);
        world.check(mark, declared, "a batch with rows that fail").await;
    }
}

fn kind(error: Error) -> ErrorKind {
    refused::<()>(Err(error))
}

/// A release inside a batch loses no wake and has the same effect as a single one.
pub(super) async fn a_batch_gives_claims_back_as_releases_do(world: &World) {
    let declared = declared(world, 2).await;
    let (quiet, woken) = (declared[0].attempt, declared[1].attempt);
    let claims = [world.claim_now(quiet).await, world.claim_now(woken).await];
    world.wake(woken).await.expect("a wake under the claim");
    let decided = decide(world, &ids(&declared), |snapshot| {
        let claimed = claims.iter().find(|claimed| claimed.id == snapshot.attempt.id());
        let claimed = claimed.expect("one of the two");
        let release = Release {
            subject: claimed.id.into(),
            claim_token: claimed.claim_token,
            recheck: Recheck::After(LEASE),
            failures: 3,
        };
        Ok(Commit { writes: vec![Write::Release(release)], ..Commit::default() })
    })
    .await;
    assert!(decided.iter().all(|(_, outcome)| outcome.is_ok()), "{decided:?}");
    let (quiet, woken) = (world.snapshot(quiet).await, world.snapshot(woken).await);
    assert_eq!((quiet.failures, woken.failures), (3, 3));
    assert!(quiet.due_at.is_some_and(|due| due > quiet.now), "{:?}", quiet.due_at);
    assert!(woken.due_at.is_some_and(|due| due <= woken.now), "a release cannot lose a wake");
    assert_eq!(
        quiet.attempt.revision(),
        world.snapshot(quiet.attempt.id()).await.attempt.revision()
    );
    let key = ResourceKey::Attempt(quiet.attempt.id());
    world
        .store
        .broker
        .decide(key, &mut |_| Ok(Commit::default()))
        .await
        .expect("the lock is free again");
}
