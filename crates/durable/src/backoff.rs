//! How long to wait before the next attempt.
//!
//! Pure: the caller supplies the random number, so that a test and a replay see
//! the same delays.

use std::time::Duration;

/// Exponential backoff between `base` and `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub base: Duration,
    pub max: Duration,
}

impl Backoff {
    /// The delay after `attempt` failures in a row (0 counts as 1).
    ///
    /// The ceiling doubles with each attempt up to `max`; the delay lies between
    /// half the ceiling and the ceiling, by `jitter` in `0..1` (values outside
    /// are clamped). Jitter down to zero was rejected: with a herd of objects
    /// behind one broken API server, a tenth of them would come back at once
    /// and keep it down.
    #[must_use]
    pub fn delay(&self, attempt: u32, jitter: f64) -> Duration {
        const SMALLEST: Duration = Duration::from_millis(1);
        let max = self.max.max(SMALLEST);
        // 2^31 times a millisecond is 24 days, beyond any sensible maximum, and
        // a shift of at most 31 cannot overflow.
        let factor = 1_u32 << attempt.saturating_sub(1).min(31);
        let ceiling = self.base.max(SMALLEST).checked_mul(factor).unwrap_or(max).min(max);
        let share = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 1.0 };
        ceiling.mul_f64(0.5 + share / 2.0).clamp(SMALLEST.min(max), max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const USUAL: Backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(300) };

    #[test]
    fn it_doubles_and_stops_at_the_maximum() {
        let full = |attempt| USUAL.delay(attempt, 1.0).as_secs();
        assert_eq!([full(0), full(1), full(2), full(3), full(9)], [1, 1, 2, 4, 256]);
        assert_eq!(full(10), 300);
        assert_eq!(full(u32::MAX), 300);
    }

    proptest! {
        #[test]
        fn it_is_never_zero_and_never_above_the_maximum(
            base in 0_u64..10_000_000,
            max in 0_u64..10_000_000,
            attempt: u32,
            jitter in prop::num::f64::ANY,
        ) {
            let backoff = Backoff {
                base: Duration::from_millis(base),
                max: Duration::from_millis(max),
            };
            let delay = backoff.delay(attempt, jitter);
            prop_assert!(delay > Duration::ZERO);
            prop_assert!(delay <= backoff.max.max(Duration::from_millis(1)));
        }

        #[test]
        fn it_does_not_shrink_with_more_failures(
            attempt in 0_u32..64,
            jitter in 0.0_f64..1.0,
        ) {
            prop_assert!(USUAL.delay(attempt, jitter) <= USUAL.delay(attempt + 1, jitter));
        }

        #[test]
        fn it_waits_at_least_half_of_its_ceiling(attempt in 1_u32..9, jitter in 0.0_f64..1.0) {
            let half = Duration::from_millis(500 << (attempt - 1));
            prop_assert!(USUAL.delay(attempt, jitter) >= half);
        }
    }
}
