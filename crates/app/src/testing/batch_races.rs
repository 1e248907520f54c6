//! Races of whole batches: with another batch of the same rows, and with
//! decisions about single rows.

use std::sync::Arc;
use std::time::Duration;

use slipway_core::{ErrorKind, Phase};

use super::races::at_once;
use super::worker::LEASE;
use super::world::{Declared, World, refused};

const ROWS: usize = 4;

async fn enrolled(world: &World) -> Vec<Declared> {
    let mut all = Vec::with_capacity(ROWS);
    for _ in 0..ROWS {
        let declared = world.enrolling().await;
        let token = world.token(declared.attempt).await;
        world.enrol(token, world.public_key()).await.expect("an enrolment");
        all.push(declared);
    }
    all
}

/// A worker whose leases expired and its successor, each with the whole batch,
/// in opposite orders: only the successor commits, and neither fails by a
/// deadlock.
pub(super) async fn batch_with_batch_of_the_same_rows(world: &Arc<World>) {
    let mark = world.mark().await;
    let all = enrolled(world).await;
    let (mut late, mut current) = (Vec::new(), Vec::new());
    for declared in &all {
        late.push(world.claim_with_lease(declared.attempt, Duration::ZERO).await);
        current.push(world.claim_with_lease(declared.attempt, LEASE).await);
    }
    late.reverse();
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (late, current) =
        at_once(
            async move { a.tick_many(&late).await },
            async move { b.tick_many(&current).await },
        )
        .await;
    assert_eq!((late.len(), current.len()), (ROWS, ROWS));
    for (id, outcome) in current {
        outcome.unwrap_or_else(|error| panic!("the holder of {id} commits: {error}"));
    }
    for (_, outcome) in late {
        assert_eq!(refused(outcome), ErrorKind::ClaimLost);
    }
    for declared in all {
        let phase = world.snapshot(declared.attempt).await.attempt.phase();
        assert_eq!(phase, Phase::Ready);
        world.check(mark, declared, "batch with batch").await;
    }
}

/// Deletions concurrent with the records of a batch: the order on one row does
/// not affect the others, and all deleted resources are leaving afterwards.
pub(super) async fn batch_with_deletes_of_its_rows(world: &Arc<World>) {
    let mark = world.mark().await;
    let all = enrolled(world).await;
    let mut claims = Vec::new();
    for declared in &all {
        claims.push(world.claim_now(declared.attempt).await);
    }
    let deleted = [all[0], all[ROWS - 1]];
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (ticked, ()) = at_once(async move { a.tick_many(&claims).await }, async move {
        for declared in deleted {
            b.delete(declared.resource).await.expect("a deletion is always accepted");
        }
    })
    .await;
    let leaves = |id| deleted.iter().any(|declared| declared.attempt == id);
    for (id, outcome) in ticked {
        match outcome {
            Ok(()) => {}
            lost => {
                assert!(leaves(id), "nothing disturbed {id}: {lost:?}");
                assert_eq!(refused(lost), ErrorKind::RevisionStale);
            }
        }
    }
    for declared in all {
        let phase = world.snapshot(declared.attempt).await.attempt.phase();
        if leaves(declared.attempt) {
            assert!(phase.is_deletion(), "{phase} is out of the deletion phases");
        } else {
            assert_eq!(phase, Phase::Ready);
        }
        world.check(mark, declared, "batch with deletes").await;
    }
}
