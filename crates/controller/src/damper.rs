//! Limits how often a flapping object wakes its attempt.
//!
//! An object that flaps many times a second for hours would otherwise cause as
//! many transitions, events and commits. The damper passes the first changes of
//! each object on at once, more than any object has between declaration and
//! deletion; after that one a second, and always the last.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// Changes of one object that are passed on at once.
const AT_ONCE: u32 = 10;

/// The interval at which further changes are passed on.
const EACH: Duration = Duration::from_secs(1);

/// Objects to remember before forgetting those that calmed down.
const REMEMBERED: usize = 1_024;

/// Passes changes on, or delays them.
#[derive(Debug)]
pub(crate) struct Damper<T> {
    /// When each object will have been calm for long enough to be forgotten.
    /// Every change passed on adds [`EACH`].
    calm_at: HashMap<T, Instant>,
    /// Delayed objects, each once, with the time to pass them on.
    held: BTreeMap<T, Instant>,
    /// Forget calm objects when this many are remembered.
    forget_at: usize,
}

impl<T> Default for Damper<T> {
    fn default() -> Self {
        Self { calm_at: HashMap::new(), held: BTreeMap::new(), forget_at: REMEMBERED }
    }
}

impl<T: Copy + Ord + Hash> Damper<T> {
    /// Whether to pass on this change now. If not, [`Damper::due`] returns the
    /// object later.
    pub(crate) fn passes(&mut self, thing: T, now: Instant) -> bool {
        if self.held.contains_key(&thing) {
            return false;
        }
        self.forget(now);
        let calm_at = self.calm_at.entry(thing).or_insert(now);
        let in_advance = (*calm_at).max(now) + EACH;
        let allowed = now + EACH * AT_ONCE;
        if in_advance <= allowed {
            *calm_at = in_advance;
            return true;
        }
        self.held.insert(thing, now + (in_advance - allowed));
        false
    }

    /// The earliest time at which a delayed object is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.held.values().min().copied()
    }

    /// Takes the delayed objects that are due.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<T> {
        let due: Vec<_> =
            self.held.iter().filter(|(_, until)| **until <= now).map(|(thing, _)| *thing).collect();
        for thing in &due {
            self.held.remove(thing);
            let calm_at = self.calm_at.entry(*thing).or_insert(now);
            *calm_at = (*calm_at).max(now) + EACH;
        }
        due
    }

    fn forget(&mut self, now: Instant) {
        if self.calm_at.len() < self.forget_at {
            return;
        }
        self.calm_at.retain(|_, calm_at| *calm_at > now);
        self.forget_at = REMEMBERED.max(2 * self.calm_at.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(20);

    /// When changes are passed on for an object that changes every [`TICK`].
    fn passed(damper: &mut Damper<u32>, begun: Instant, time: Duration) -> Vec<Duration> {
        let mut passed = Vec::new();
        let mut after = Duration::ZERO;
        while after < time {
            let now = begun + after;
            passed.extend(damper.due(now).iter().map(|_| after));
            if damper.passes(1, now) {
                passed.push(after);
            }
            after += TICK;
        }
        passed
    }

    #[test]
    fn the_first_changes_pass_at_once_and_then_one_a_second() {
        let (mut damper, begun) = (Damper::default(), Instant::now());
        let passed = passed(&mut damper, begun, Duration::from_secs(20));
        let at_once = passed.iter().filter(|after| **after < 10 * TICK).count();
        assert_eq!(at_once, 10, "{passed:?}");
        assert!((27..=31).contains(&passed.len()), "{passed:?}");
        assert!(passed.windows(2).skip(10).all(|pair| pair[1] - pair[0] >= EACH), "{passed:?}");
        assert!(damper.passes(2, begun), "another is nobody's concern");
    }

    #[test]
    fn the_last_change_is_never_lost_and_calm_is_forgiven() {
        let (mut damper, begun) = (Damper::default(), Instant::now());
        let last = (0..11).map(|_| damper.passes(1, begun)).last();
        assert_eq!(last, Some(false));
        let next = damper.next().unwrap();
        assert!(damper.due(next - TICK).is_empty());
        assert_eq!(damper.due(next), [1]);
        assert_eq!(damper.next(), None);
        let later = next + EACH * AT_ONCE;
        assert!((0..10).all(|_| damper.passes(1, later)), "it was calm for long enough");
    }

    #[test]
    fn what_is_calm_is_forgotten() {
        let (mut damper, begun) = (Damper::default(), Instant::now());
        for round in 0..10_u32 {
            let now = begun + EACH * 20 * round;
            for thing in 0..1_000 {
                assert!(damper.passes(round * 1_000 + thing, now));
            }
        }
        assert!(damper.calm_at.len() <= 2 * REMEMBERED, "{}", damper.calm_at.len());
    }
}
