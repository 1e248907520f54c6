//! Rate limits: a bucket that fills at a steady rate and holds a burst. Time is
//! an input, counted from any moment the caller likes.
//!
//! (The crate `governor` does the same and brings a keyed map of its own, whose
//! eviction would need a loop.)

use std::time::Duration;

/// The limit of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests per second in the long run. At least one.
    pub per_second: u32,
    /// Requests at once after a pause. At least one.
    pub burst: u32,
}

impl Rate {
    /// The limit of one node. A heartbeat is a write, and one each second is
    /// plenty; ten leave room for every other call and for an agent that tries
    /// again. Nodes that are told to send more get twice that.
    pub fn of_node(heartbeat_interval: Duration) -> Self {
        let interval = heartbeat_interval.as_millis().max(1);
        let told = u32::try_from(1_000_u128.div_ceil(interval)).unwrap_or(u32::MAX);
        let per_second = told.saturating_mul(2).max(10);
        Self { per_second, burst: per_second.saturating_mul(2) }
    }
}

/// The remaining credit, in billionths of a request: a request costs 10^9, and
/// each nanosecond adds `per_second`. Integers, so that rounding never loses
/// anything, however often it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    credit: u128,
    at: Duration,
}

const SECOND: u128 = 1_000_000_000;

impl Bucket {
    /// A full bucket at this moment.
    pub fn full(rate: Rate, now: Duration) -> Self {
        Self { credit: capacity(rate), at: now }
    }

    /// Whether it has nothing to remember: it is full at this moment.
    pub fn is_full(&self, rate: Rate, now: Duration) -> bool {
        self.credit_at(rate, now) == capacity(rate)
    }

    fn credit_at(&self, rate: Rate, now: Duration) -> u128 {
        let passed = now.saturating_sub(self.at).as_nanos();
        let gained = passed.saturating_mul(u128::from(rate.per_second.max(1)));
        self.credit.saturating_add(gained).min(capacity(rate))
    }

    /// Takes one request out, or answers how long to wait until there is one.
    pub fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        self.credit = self.credit_at(rate, now);
        self.at = self.at.max(now);
        match self.credit.checked_sub(SECOND) {
            Some(left) => {
                self.credit = left;
                Ok(())
            }
            None => {
                let missing = (SECOND - self.credit).div_ceil(u128::from(rate.per_second.max(1)));
                Err(Duration::from_nanos(u64::try_from(missing).unwrap_or(u64::MAX)))
            }
        }
    }
}

fn capacity(rate: Rate) -> u128 {
    u128::from(rate.burst.max(1)) * SECOND
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In any period no more than the burst plus what was filled; and
        /// whoever waits as long as told gets through.
        #[test]
        fn no_more_than_the_rate_and_no_longer_than_was_said(
            per_second in 1_u32..500,
            burst in 1_u32..500,
            pauses in proptest::collection::vec(0_u64..50_000_000, 1..400),
        ) {
            let rate = Rate { per_second, burst };
            let mut bucket = Bucket::full(rate, Duration::ZERO);
            let (mut now, mut taken) = (Duration::ZERO, 0_u128);
            for pause in pauses {
                now += Duration::from_nanos(pause);
                match bucket.take(rate, now) {
                    Ok(()) => taken += 1,
                    Err(wait) => {
                        prop_assert!(wait > Duration::ZERO);
                        let mut waiting = bucket;
                        prop_assert!(waiting.take(rate, now + wait).is_ok());
                        let mut hasty = bucket;
                        let early = now + wait - Duration::from_nanos(1);
                        prop_assert!(hasty.take(rate, early).is_err());
                    }
                }
                // A caller whose full bucket was forgotten gets a new one.
                if bucket.is_full(rate, now) {
                    let (mut kept, mut new) = (bucket, Bucket::full(rate, now));
                    prop_assert_eq!(kept.take(rate, now), new.take(rate, now));
                    prop_assert_eq!(kept, new);
                }
                let filled = now.as_nanos() * u128::from(per_second) / SECOND;
                prop_assert!(taken <= u128::from(burst) + filled);
            }
        }
    }

    #[test]
    fn a_node_may_do_twice_what_it_is_told() {
        for (interval, per_second) in [(30_000, 10), (1_000, 10), (200, 10), (100, 20), (20, 100)] {
            let rate = Rate::of_node(Duration::from_millis(interval));
            assert_eq!(rate, Rate { per_second, burst: 2 * per_second }, "{interval}");
        }
        assert_eq!(Rate::of_node(Duration::ZERO).per_second, 2_000);
    }

    #[test]
    fn a_burst_is_had_at_once_and_a_clock_that_goes_back_gives_nothing() {
        let rate = Rate { per_second: 10, burst: 3 };
        let start = Duration::from_secs(5);
        let mut bucket = Bucket::full(rate, start);
        for _ in 0..3 {
            assert_eq!(bucket.take(rate, start), Ok(()));
        }
        assert_eq!(bucket.take(rate, start), Err(Duration::from_millis(100)));
        assert!(bucket.take(rate, Duration::ZERO).is_err());
        assert_eq!(bucket.take(rate, start + Duration::from_millis(100)), Ok(()));
    }
}
