//! When a stack that failed is tried again: later each time, with jitter, and at once
//! if it is offered another object.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::retry_delay::fraction;

/// The delay after the first failure.
const FIRST: Duration = Duration::from_secs(1);

/// Rare enough for what a person has to repair, and soon enough after they did.
const LONGEST: Duration = Duration::from_secs(300);

/// The longest delay between two checks of something that takes its time.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What takes longer than this is reported as a failure, which it may stop being.
pub(crate) const OVERDUE: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Retry {
    object_id: String,
    reason: String,
    since: Instant,
    failures: u32,
    /// It only takes its time.
    is_waiting: bool,
    /// `None` until the object changes.
    next: Option<Instant>,
}

/// The stacks that are not as they should be.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    stacks: BTreeMap<String, Retry>,
}

impl Retries {
    pub(crate) fn is_due(&self, stack: &str, object_id: &str, now: Instant) -> bool {
        self.stacks.get(stack).is_none_or(|retry| {
            retry.object_id != object_id || retry.next.is_some_and(|next| next <= now)
        })
    }

    /// Notes a failure, or that something takes its time.
    pub(crate) fn failed(
        &mut self,
        (stack, object_id): (&str, &str),
        reason: &str,
        is_waiting: bool,
        now: Instant,
    ) -> Result<(), getrandom::Error> {
        let (known, longest) =
            (self.take(stack, object_id), if is_waiting { LONGEST_WAIT } else { LONGEST });
        let (since, failures) = known.map_or((now, 0), |known| (known.since, known.failures));
        // 2^9 seconds are beyond the longest delay; more would only overflow.
        let whole = FIRST.saturating_mul(1 << failures.min(9)).min(longest);
        let next = Some(now + whole / 2 + (whole / 2).mul_f64(fraction()?));
        let known = Retry {
            since,
            failures: failures.saturating_add(1),
            is_waiting,
            next,
            object_id: object_id.to_owned(),
            reason: reason.to_owned(),
        };
        self.stacks.insert(stack.to_owned(), known);
        Ok(())
    }

    /// Notes that trying again is in vain until the object changes.
    pub(crate) fn refused(&mut self, (stack, object_id): (&str, &str), reason: &str, now: Instant) {
        let (object_id, reason) = (object_id.to_owned(), reason.to_owned());
        let known =
            Retry { object_id, reason, since: now, failures: 1, is_waiting: false, next: None };
        self.stacks.insert(stack.to_owned(), known);
    }

    fn take(&mut self, stack: &str, object_id: &str) -> Option<Retry> {
        self.stacks.remove(stack).filter(|known| known.object_id == object_id)
    }

    /// Since when a stack waits.
    pub(crate) fn since(&self, stack: &str) -> Option<Instant> {
        self.stacks.get(stack).map(|retry| retry.since)
    }

    pub(crate) fn succeeded(&mut self, stack: &str) {
        self.stacks.remove(stack);
    }

    /// Drops stacks that nobody asks for any more.
    pub(crate) fn retain(&mut self, is_known: impl Fn(&str) -> bool) {
        self.stacks.retain(|stack, _| is_known(stack));
    }

    /// The object and the reason of a stack that failed.
    pub(crate) fn reason(&self, stack: &str) -> Option<(&str, &str)> {
        self.stacks.get(stack).map(|retry| (&*retry.object_id, &*retry.reason))
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.stacks
            .iter()
            .map(|(stack, retry)| format!("stack {stack}: {}", retry.reason))
            .collect()
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.stacks.values().filter_map(|retry| retry.next).min()
    }

    /// When the next one is due that only takes its time.
    pub(crate) fn next_waiting(&self) -> Option<Instant> {
        let waiting = self.stacks.values().filter(|retry| retry.is_waiting);
        waiting.filter_map(|retry| retry.next).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_tried_again_later_each_time_and_another_object_at_once() {
        let (mut retries, now) = (Retries::default(), Instant::now());
        assert!(retries.is_due("s", "o1", now));
        for whole in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            retries.failed(("s", "o1"), "why", false, now).unwrap();
            let delay = retries.next().unwrap() - now;
            let whole = Duration::from_secs(whole);
            assert!(whole / 2 <= delay && delay <= whole, "{delay:?} is not within {whole:?}");
            assert!(!retries.is_due("s", "o1", now) && retries.is_due("s", "o1", now + whole));
            assert!(retries.is_due("s", "o2", now) && retries.is_due("t", "o1", now));
        }
        retries.failed(("s", "o2"), "why", false, now).unwrap();
        assert!(retries.next().unwrap() - now <= FIRST, "another object begins anew");
        retries.succeeded("s");
        assert_eq!((retries.next(), retries.problems().len()), (None, 0));
    }

    #[test]
    fn a_refusal_waits_for_another_object() {
        let (mut retries, now) = (Retries::default(), Instant::now());
        retries.refused(("s", "o1"), "why", now);
        assert!(!retries.is_due("s", "o1", now + LONGEST * 10) && retries.is_due("s", "o2", now));
        assert_eq!(retries.problems(), ["stack s: why"]);
    }
}
