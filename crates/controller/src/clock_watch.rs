//! Watches the database's clock against the monotonic one of this process.
//!
//! What is due, and whose lease is over, is decided by the database's clock. A
//! clock that goes back leaves every row due, and every lease of a worker that
//! died, as far in the future as it went: nothing would be looked at until the
//! time had come a second time. A clock that goes forward needs no help: all is
//! due at once, and claims that were taken for over are fenced.

use std::time::{Duration, Instant};

use slipway_app::ports::Stores;
use slipway_core::Timestamp;

use crate::driver::Shutdown;

/// How often it is looked at: how long a jump stalls the loops at most.
const POLL: Duration = Duration::from_secs(1);

/// Less than this is the way there and back, or a clock that is being slewed,
/// and not worth touching every row for.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Runs until shutdown. `lease` is the longest that a claim lasts.
pub async fn watch_clock(store: Stores, lease: Duration, mut shutdown: Shutdown) {
    let mut before: Option<Reading> = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = shutdown.requested() => return,
        }
        // Before the question: an answer that took long makes the clock look
        // ahead, never behind.
        let at = Instant::now();
        let Ok(shown) = store.operations.database_now().await else {
            // Whoever needs the database says so; what was read stays true.
            continue;
        };
        let reading = Reading { at, shown };
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
                    tracing::warn!(%error, ?jump, "the database's clock went back; trying again");
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
    /// By how much the clock shows less than it should since then.
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
