//! How long a worker may still act on a row that it claimed.
//!
//! A lease is measured on the monotonic clock of the process that holds it.
//! The database keeps the authoritative end of the lease on *its* clock; the
//! two never need to agree, because the holder starts counting *before* it
//! sends the claim, and so always believes the lease to end earlier than the
//! database does.

use std::time::{Duration, Instant};

/// The holder's view of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    claimed_before: Instant,
    length: Duration,
}

impl Lease {
    /// `claimed_before` must be taken before the claim statement is sent.
    /// Taken afterwards, the holder would overestimate its lease by one round
    /// trip, and two workers could act at once.
    #[must_use]
    pub fn new(claimed_before: Instant, length: Duration) -> Self {
        Self { claimed_before, length }
    }

    /// What is left, zero once the lease is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.length.saturating_sub(self.claimed_before.elapsed())
    }

    /// Whether an external action with this deadline may still start: there
    /// must be strictly more lease left than the action may take.
    #[must_use]
    pub fn allows(&self, deadline: Duration) -> bool {
        self.remaining() > deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(seconds: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn a_fresh_lease_allows_what_fits_into_it() {
        let lease = Lease::new(Instant::now(), Duration::from_secs(60));
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
}
