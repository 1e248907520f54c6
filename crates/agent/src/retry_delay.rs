//! The delay of an agent after a call to the control plane that may succeed later. Unlike the
//! backoff of the loops it obeys the server's `Retry-After`.

use std::time::Duration;

/// A restarted server answers within a few hundred milliseconds.
const FIRST: Duration = Duration::from_millis(100);

/// Short enough that a node is enrolled a moment after its server came back;
/// a thousand nodes at this pace are 200 requests a second.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

/// A longer `Retry-After` counts as a mistake and is cut to this: the agent would
/// look dead for longer than anybody waits for it.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(crate) struct RetryDelay {
    failures: u32,
}

impl RetryDelay {
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next delay: 100 ms doubled per failure, of which a random part
    /// between half and all, so that nodes that failed together do not come back
    /// together; never less than the server asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Result<Duration, getrandom::Error> {
        // 2^6 * 100 ms is beyond the longest delay; more would only overflow.
        let whole = FIRST.saturating_mul(1 << self.failures.min(6)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let half = whole / 2;
        let delay = half + half.mul_f64(fraction()?);
        Ok(delay.max(asked.unwrap_or_default().min(LONGEST_ASKED)))
    }
}

/// Uniform in 0..1.
pub(crate) fn fraction() -> Result<f64, getrandom::Error> {
    let random = getrandom::u32()?;
    Ok(f64::from(random) / (f64::from(u32::MAX) + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_within_their_jitter_up_to_the_longest() {
        let mut delays = RetryDelay::default();
        for whole in [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000] {
            let delay = delays.next(None).unwrap();
            let whole = Duration::from_millis(whole);
            assert!(whole / 2 <= delay && delay <= whole, "{delay:?} is not within {whole:?}");
        }
        delays.reset();
        assert!(delays.next(None).unwrap() <= FIRST);
    }

    #[test]
    fn the_server_may_ask_for_more_within_reason() {
        let mut delays = RetryDelay::default();
        assert_eq!(delays.next(Some(Duration::from_secs(7))).unwrap(), Duration::from_secs(7));
        assert_eq!(delays.next(Some(Duration::from_secs(86_400))).unwrap(), LONGEST_ASKED);
    }
}
