//! The meter: the application reports here what it did and how long it took.
//! Nothing reads it back, and no decision depends on it. Every label value is
//! from a closed set, or the name of a cluster.

use std::fmt;
use std::time::Duration;

use slipway_core::broker::transition::Transition;

/// How a tick ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TickOutcome {
    Recorded,
    Unchanged,
    /// Another worker or writer was faster; the claim was lost or the row changed.
    Overtaken,
    /// The lease was about to end, so no action started.
    Expiring,
    Failed,
}

impl TickOutcome {
    pub const ALL: [Self; 5] =
        [Self::Recorded, Self::Unchanged, Self::Overtaken, Self::Expiring, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Unchanged => "unchanged",
            Self::Overtaken => "overtaken",
            Self::Expiring => "expiring",
            Self::Failed => "failed",
        }
    }
}

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
