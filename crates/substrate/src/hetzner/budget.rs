//! The rate limit of a project, as the headers of the last answer tell it.
//!
//! The provider counts the requests of a project, whoever sends them, so its counter is the
//! budget that all replicas share: each learns from its own answers what all of them have used.
//! No row is needed for that. What is left is given away by importance ([`Purpose`]): background
//! scans stop first, then what creates, then observations, and a deletion may use the last
//! request. So a burst of creates leaves room for the deletions that stop paying for servers.
//!
//! The time until the budget is full again is taken between two header values of the same
//! answer (`Date` and `RateLimit-Reset`), so the clock of this machine does not matter.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The documented limit, until an answer says otherwise.
const LIMIT: u32 = 3_600;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The search for leaks, and the high-water mark.
    Background,
    /// A server is made or changed.
    Apply,
    /// What decisions are made from.
    Observe,
    /// A deletion, and a question of a person.
    Urgent,
}

impl Purpose {
    /// The part of the limit that it leaves to what is more important, in percent.
    const fn leaves(self) -> f64 {
        match self {
            Self::Background => 20.0,
            Self::Apply => 10.0,
            Self::Observe => 5.0,
            Self::Urgent => 0.0,
        }
    }
}

/// What a request that is not sent waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spent {
    pub left: f64,
    pub limit: u32,
    pub again_in: Duration,
}

/// The headers of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateHeaders {
    pub limit: u32,
    pub remaining: u32,
    /// From the answer until the budget is full.
    pub full_in: Option<Duration>,
}

/// The budget, as far as this process knows it.
#[derive(Debug)]
pub(super) struct Budget(Mutex<State>);

#[derive(Debug)]
struct State {
    limit: u32,
    left: f64,
    each_second: f64,
    at: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        let limit = f64::from(LIMIT);
        let state =
            State { limit: LIMIT, left: limit, each_second: limit / 3_600.0, at: Instant::now() };
        Self(Mutex::new(state))
    }
}

impl Budget {
    /// Takes one request for this purpose, or says how long there is none.
    pub(super) fn take(&self, purpose: Purpose) -> Result<(), Spent> {
        let mut state = self.state();
        state.refill(Instant::now());
        let floor = f64::from(state.limit) * purpose.leaves() / 100.0;
        if state.left - 1.0 >= floor {
            state.left -= 1.0;
            return Ok(());
        }
        let lacking = floor + 1.0 - state.left;
        let again_in = Duration::try_from_secs_f64(lacking / state.each_second);
        let again_in = again_in.unwrap_or(Duration::from_secs(3_600));
        Err(Spent { left: state.left, limit: state.limit, again_in })
    }

    /// Learns what the provider says.
    pub(super) fn learn(&self, seen: RateHeaders) {
        let mut state = self.state();
        let lacking = f64::from(seen.limit.saturating_sub(seen.remaining));
        let by_reset = seen.full_in.map(|time| lacking / time.as_secs_f64());
        let usual = f64::from(seen.limit) / 3_600.0;
        state.each_second =
            by_reset.filter(|rate| rate.is_finite() && *rate > 0.0).unwrap_or(usual);
        state.limit = seen.limit.max(1);
        state.left = f64::from(seen.remaining);
        state.at = Instant::now();
    }

    /// The provider refused a request for its limit.
    pub(super) fn is_spent(&self) {
        let mut state = self.state();
        state.left = 0.0;
        state.at = Instant::now();
    }

    /// How far apart two requests of a loop should be that repeats by itself: a third of what
    /// comes back while more than half of the budget is left, and ever less below.
    pub(super) fn apart(&self) -> Duration {
        let mut state = self.state();
        state.refill(Instant::now());
        let share = (state.left / f64::from(state.limit)).clamp(0.05, 1.0);
        let requests = if share > 0.5 { 3.0 } else { 4.0 / share };
        Duration::try_from_secs_f64(requests / state.each_second)
            .unwrap_or(Duration::from_secs(3_600))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn refill(&mut self, now: Instant) {
        let more = now.saturating_duration_since(self.at).as_secs_f64() * self.each_second;
        self.left = (self.left + more).min(f64::from(self.limit));
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(limit: u32, remaining: u32) -> Budget {
        let budget = Budget::default();
        let full_in = Some(Duration::from_secs(u64::from(limit - remaining)));
        budget.learn(RateHeaders { limit, remaining, full_in });
        budget
    }

    #[test]
    fn what_is_left_goes_to_what_is_more_important() {
        use Purpose::{Apply, Background, Observe, Urgent};
        for (remaining, admitted) in [
            (3_600, &[Background, Apply, Observe, Urgent][..]),
            (700, &[Apply, Observe, Urgent]),
            (300, &[Observe, Urgent]),
            (100, &[Urgent]),
            (0, &[]),
        ] {
            for purpose in [Background, Apply, Observe, Urgent] {
                let budget = seen(3_600, remaining);
                let expected = admitted.contains(&purpose);
                assert_eq!(budget.take(purpose).is_ok(), expected, "{purpose:?} at {remaining}");
            }
        }
    }

    #[test]
    fn a_refusal_says_when_there_is_more() {
        let budget = seen(3_600, 0);
        let spent = budget.take(Purpose::Urgent).unwrap_err();
        assert!(spent.again_in <= Duration::from_secs(1), "{spent:?}");
        let spent = budget.take(Purpose::Background).unwrap_err();
        assert!(spent.again_in > Duration::from_secs(700), "{spent:?}");
    }

    #[test]
    fn each_request_counts_before_its_answer() {
        let budget = seen(3_600, 181);
        assert!(budget.take(Purpose::Observe).is_ok());
        assert!(budget.take(Purpose::Observe).is_err(), "many may be under way at once");
    }

    #[test]
    fn loops_slow_down_as_the_budget_shrinks() {
        let (full, half, low) = (seen(3_600, 3_600), seen(3_600, 1_700), seen(3_600, 36));
        assert!(full.apart() < half.apart() && half.apart() < low.apart());
        assert!(full.apart() <= Duration::from_secs(3) && low.apart() < Duration::from_secs(120));
    }

    #[test]
    fn headers_that_make_no_sense_do_no_harm() {
        let budget = Budget::default();
        let full_in = Some(Duration::ZERO);
        budget.learn(RateHeaders { limit: 0, remaining: 0, full_in });
        assert!(budget.take(Purpose::Urgent).is_err());
        assert!(budget.apart() > Duration::ZERO);
    }
}
