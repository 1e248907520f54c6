//! Compares the database's clock with the monotonic clock of this process.
//!
//! The database's clock decides what is due and which leases are over. If it
//! goes back, every due time, and every lease of a dead worker, lies that much
//! further in the future: the loops would stall until the clock has caught up.
//! A clock that goes forward needs no help: everything is due at once, and the
//! claim tokens fence claims that ended too early.
//!
//! A jump while no process ran cannot be measured. At the start every lease that is
//! longer than any can be is shortened, every beginning of a wait that lies in the
//! future is moved to now, and the loops make their rows due themselves.

use std::time::{Duration, Instant};

use slipway_app::ports::Stores;
use slipway_core::Timestamp;

use crate::driver::Shutdown;
use crate::orphans::OrphanLoop;

/// How often to compare, and so how long a jump stalls the loops at most.
const POLL: Duration = Duration::from_secs(1);

/// A smaller difference is the round trip, or a clock being slewed, and does
/// not justify writing every row.
const TOLERANCE: Duration = Duration::from_secs(1);

/// The longest lease of a periodic task.
const LONGEST_TASK: Duration = OrphanLoop::LEASE;

/// Runs until shutdown. `lease` is that of the resource loop.
pub async fn watch_clock(store: Stores, lease: Duration, mut shutdown: Shutdown) {
    // The longest that a claim of any loop lasts.
    let lease = lease.max(LONGEST_TASK);
    let mut before: Option<Reading> = None;
    let mut started = false;
    loop {
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = shutdown.requested() => return,
        }
        // Read before the query, so that a slow answer makes the database's
        // clock appear ahead, never behind.
        let at = Instant::now();
        let Ok(shown) = store.operations.database_now().await else {
            // The loops report a failing database; the last reading stays valid.
            continue;
        };
        let reading = Reading { at, shown };
        if !started {
            started = store.operations.schedule_pull_in(Duration::ZERO, lease).await.is_ok();
        }
        if let Some(jump) = before.and_then(|before| reading.went_back(before)) {
            match store.operations.schedule_pull_in(jump, lease).await {
                Ok(rows) => {
                    tracing::warn!(
                        ?jump,
                        rows,
                        "the database's clock went back; rows are due anew"
                    );
                }
                Err(error) => {
                    if !error.is_logged() {
                        tracing::warn!(%error, ?jump, "the database's clock went back; trying again");
                    }
                    continue;
                }
            }
        }
        before = Some(reading);
    }
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    shown: Timestamp,
}

impl Reading {
    /// How much less the clock shows than it should since `before`.
    fn went_back(&self, before: Self) -> Option<Duration> {
        let expected = before.shown.plus(self.at.saturating_duration_since(before.at));
        Some(expected.since(self.shown)).filter(|lacking| *lacking > TOLERANCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_shows_less_than_passed_went_back() {
        let at = Instant::now();
        let shown = Timestamp::from_micros(1_000_000_000);
        let before = Reading { at, shown };
        let later = |passed: u64, shows: i64| {
            let shown = Timestamp::from_micros(shown.as_micros() + shows * 1_000_000);
            Reading { at: at + Duration::from_secs(passed), shown }.went_back(before)
        };
        assert_eq!(later(10, 10), None);
        assert_eq!(later(10, 9), None, "within what slewing does");
        assert_eq!(later(10, 7_210), None, "forward");
        assert_eq!(later(10, 5), Some(Duration::from_secs(5)));
        assert_eq!(later(10, -90), Some(Duration::from_secs(100)));
    }
}
