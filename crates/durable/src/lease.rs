//! How long a worker may still act on a row that it claimed.
//!
//! A lease is measured on the clock of the machine that holds it. The database
//! keeps the authoritative end of the lease on *its* clock; the two never need
//! to agree, because the holder starts counting *before* it sends the claim or
//! the renewal, and so always believes the lease to end earlier than the
//! database does.
//!
//! The clock must go on while the machine sleeps: one that stops in suspend, as
//! `std::time::Instant` does on Linux, would let a laptop that wakes after an
//! hour act under a lease that ended an hour ago.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment on a clock that only goes forward and does not stop in suspend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(CLOCK);
        // The kernel counts from the boot: neither part is ever negative.
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        Self(Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default()))
    }

    /// The time since this moment.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
/// Elsewhere the monotonic clock is the one that includes suspend (macOS), or
/// the best there is.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The holder's view of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    asked_before: Moment,
    length: Duration,
}

impl Lease {
    /// `asked_before` must be taken before the claim or the renewal is sent.
    /// Taken afterwards, the holder would overestimate its lease by one round
    /// trip, and two workers could act at once.
    #[must_use]
    pub fn new(asked_before: Moment, length: Duration) -> Self {
        Self { asked_before, length }
    }

    /// The time left, zero once the lease is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.length.saturating_sub(self.asked_before.elapsed())
    }

    /// Whether an external action with this deadline may still start: there
    /// must be strictly more lease left than the action may take.
    #[must_use]
    pub fn allows(&self, deadline: Duration) -> bool {
        self.remaining() > deadline
    }

    /// How long after its claim or renewal a lease is renewed. A third of its
    /// length: one renewal may fail, and the next still comes before it is too
    /// late to start an action that takes a third of the lease.
    #[must_use]
    pub fn renewal_after(length: Duration) -> Duration {
        length / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(seconds: u64) -> Moment {
        Moment(Moment::now().0.checked_sub(Duration::from_secs(seconds)).unwrap())
    }

    #[test]
    fn a_fresh_lease_allows_what_fits_into_it() {
        let lease = Lease::new(Moment::now(), Duration::from_secs(60));
        assert!(lease.allows(Duration::from_secs(30)));
        assert!(!lease.allows(Duration::from_secs(60)), "an equal deadline leaves no room");
        assert!(lease.remaining() <= Duration::from_secs(60));
    }

    #[test]
    fn a_lease_that_is_over_allows_nothing() {
        let lease = Lease::new(ago(2), Duration::from_secs(1));
        assert_eq!(lease.remaining(), Duration::ZERO);
        assert!(!lease.allows(Duration::ZERO));
    }

    /// Two renewals fit between the claim and the moment from which on an
    /// action of a third of the lease may not start.
    #[test]
    fn a_renewal_may_fail_once() {
        let length = Duration::from_secs(30);
        let deadline = length / 3;
        let second_try = Lease::renewal_after(length) * 2;
        assert!(second_try <= length - deadline);
    }

    /// A test cannot suspend the machine; but it can check that the clock is
    /// never behind the one that does not count suspend.
    #[test]
    fn the_clock_counts_what_the_machine_slept() {
        let awake = clock_gettime(ClockId::Monotonic);
        let awake = Duration::new(
            u64::try_from(awake.tv_sec).unwrap(),
            u32::try_from(awake.tv_nsec).unwrap(),
        );
        let before = Moment::now();
        assert!(before.0 >= awake);
        assert!(Moment::now() >= before);
    }
}
