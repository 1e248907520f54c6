//! The status of a loop, for API, CLI and probes.

use std::sync::Mutex;
use std::time::Instant;

use slipway_core::time::Timestamp;

/// The status of one loop, shared with those who show it.
#[derive(Debug)]
pub struct Status {
    name: String,
    started: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Clone, Default)]
struct Inner {
    activations: u64,
    claimed: u64,
    failed: u64,
    last_activation_at: Option<Timestamp>,
    last_success: Option<Instant>,
    last_claim: Option<Instant>,
    last_error: Option<String>,
}

/// A copy of the status at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub name: String,
    /// When the loop was made.
    pub started: Instant,
    pub activations: u64,
    /// Items claimed.
    pub claimed: u64,
    /// Items, or whole activations, that ended in an error.
    pub failed: u64,
    pub last_activation_at: Option<Timestamp>,
    /// The last successful claim, whether it found work or not.
    pub last_success: Option<Instant>,
    /// The last claim that found work.
    pub last_claim: Option<Instant>,
    /// Of what failed since the last successful claim.
    pub last_error: Option<String>,
}

impl Status {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), started: Instant::now(), inner: Mutex::default() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn activated(&self, at: Timestamp, claimed: usize) {
        self.with(|inner| {
            inner.activations += 1;
            inner.claimed += u64::try_from(claimed).unwrap_or(u64::MAX);
            inner.last_activation_at = Some(at);
            inner.last_error = None;
            let now = Some(Instant::now());
            inner.last_success = now;
            if claimed > 0 {
                inner.last_claim = now;
            }
        });
    }

    pub(crate) fn failed(&self, error: String) {
        self.with(|inner| {
            inner.failed += 1;
            inner.last_error = Some(error);
        });
    }

    pub fn snapshot(&self) -> Snapshot {
        let inner = self.with(|inner| inner.clone());
        Snapshot {
            name: self.name.clone(),
            started: self.started,
            activations: inner.activations,
            claimed: inner.claimed,
            failed: inner.failed,
            last_activation_at: inner.last_activation_at,
            last_success: inner.last_success,
            last_claim: inner.last_claim,
            last_error: inner.last_error,
        }
    }

    /// Counters stay usable even if a holder of the lock panicked.
    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
