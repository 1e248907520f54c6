//! The meter: where the application says what it did and how long it took. It
//! is told, and never asked; nothing is decided on what it knows. Every name
//! that is given to it is of a closed set, or the name of a cluster.

use std::fmt;
use std::time::Duration;

use slipway_core::rules::transition::Transition;

/// How a tick ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TickOutcome {
    Recorded,
    Unchanged,
    /// Another worker or writer was faster: the claim was lost.
    Overtaken,
    /// The lease was about to end, so nothing was begun.
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

/// What is told. Each does nothing by default, which is all that most tests
/// and benchmarks want.
pub trait Meter: fmt::Debug + Send + Sync {
    /// Phases were left and entered, and that is committed.
    fn transitioned(&self, _transitions: &[Transition]) {}

    /// This process serves the partition, whether there is work in it or not.
    fn serving(&self, _partition: &str) {}

    /// So many claims were taken.
    fn claimed(&self, _partition: &str, _count: usize) {}

    /// So many claims of an earlier life of this process were taken back.
    fn reclaimed(&self, _partition: &str, _count: u64) {}

    /// So many claims are held more than before; fewer if it is negative.
    fn claims_changed(&self, _partition: &str, _change: i64) {}

    /// A tick ended, so long after its batch was begun.
    fn ticked(&self, _partition: &str, _outcome: TickOutcome, _took: Duration) {}

    /// Something outside was asked for and it ended like this.
    fn acted(
        &self,
        _partition: &str,
        _kind: &'static str,
        _outcome: &'static str,
        _took: Duration,
    ) {
    }
}

/// Nobody wants to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unmetered;

impl Meter for Unmetered {}
