//! Callers that disconnect in the middle: nothing of theirs stays, and the
//! store keeps working.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::testing::world::World;

/// More than the longest of the operations below takes.
const MOST_POLLS: u32 = 80;

/// A client that disconnects drops its future at any await. A store with one
/// writing connection must not lose it to an open transaction.
pub(super) async fn a_caller_that_goes_away_leaves_nothing_open(world: &World) {
    let mark = world.mark().await;
    let declared = world.enrolling().await;
    let mut finished = [0; 3];
    for polls in 0..MOST_POLLS {
        let outcomes = [
            polled(world.declare(&world.handle()), polls).await.map(|outcome| outcome.map(drop)),
            polled(world.wake(declared.attempt), polls).await,
            polled(world.store.broker.attempt_load(&[declared.attempt]), polls)
                .await
                .map(|outcome| outcome.map(drop)),
        ];
        for (finished, outcome) in finished.iter_mut().zip(outcomes) {
            let Some(outcome) = outcome else { continue };
            outcome.unwrap_or_else(|error| panic!("an earlier caller is in the way: {error}"));
            *finished += 1_u32;
        }
    }
    for finished in finished {
        assert!(finished > 0, "none of the callers was let finish; raise the number of polls");
        assert!(finished < MOST_POLLS, "none of the callers went away in the middle");
    }
    world.check(mark, declared, "after callers that went away").await;
}

/// Polls a future at most this many times and then drops it.
async fn polled<T>(future: impl Future<Output = T>, times: u32) -> Option<T> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}
