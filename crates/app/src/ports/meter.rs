//! The meter: the application reports here what it did and how long it took.
//! Nothing reads it back, and no decision depends on it. Every label value is
//! from a closed set, or the name of a cluster.

use std::fmt;
use std::time::Duration;

use slipway_core::broker::transition::Transition;
use slipway_core::closed_set;

closed_set!(
    /// How a tick ended.
    TickOutcome {
        Recorded => "recorded",
        Unchanged => "unchanged",
        /// Another worker or writer was faster; the claim was lost or the row changed.
        Overtaken => "overtaken",
        /// The lease was about to end, so no action started.
        Expiring => "expiring",
        Failed => "failed",
    }
);

/// What the application reports. Every method does nothing by default, which
/// suffices for most tests and benchmarks.
pub trait Meter: fmt::Debug + Send + Sync {
    /// Phases changed; the change is committed.
    fn transitioned(&self, _transitions: &[Transition]) {}

    /// This process serves the partition, whether it has work or not.
    fn serving(&self, _partition: &str) {}

    fn claimed(&self, _partition: &str, _count: usize) {}

    /// This many claims of an earlier process of this worker were taken back.
    fn reclaimed(&self, _partition: &str, _count: u64) {}

    /// The number of claims that this process has changed by this much.
    fn claims_changed(&self, _partition: &str, _change: i64) {}

    /// A tick ended, this long after its batch began.
    fn ticked(&self, _partition: &str, _outcome: TickOutcome, _took: Duration) {}

    /// An outside action ended with this outcome.
    fn acted(
        &self,
        _partition: &str,
        _kind: &'static str,
        _outcome: &'static str,
        _took: Duration,
    ) {
    }
}

/// A meter that records nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unmetered;

impl Meter for Unmetered {}
