//! What every use-case is handed: the ports and the settings. Built once, by
//! the binary.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use slipway_core::blocker::Deadlines;
use slipway_core::token::TokenLifetimes;
use tokio::sync::Notify;

use crate::ports::{Clock, Entropy, Meter, Stores};

/// The ports and settings of this process.
#[derive(Debug, Clone)]
pub struct Context {
    pub stores: Stores,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub wakes: Wakes,
    pub meter: Arc<dyn Meter>,
    pub settings: Settings,
}

/// What the domain is configured with.
#[derive(Debug, Clone)]
pub struct Settings {
    pub deadlines: Deadlines,
    /// How long a resource may be due without being claimed before nobody is
    /// taken to serve its cluster: one lease, which a dead holder may leave
    /// behind, and one sweep.
    pub claimed_within: Duration,
    pub token_lifetimes: TokenLifetimes,
    /// The `<env>` in tokens and node keys.
    pub token_environment: String,
}

/// Tells the loops of this process that something may have become due. Other
/// replicas find it by polling; a lost wake costs a poll, never an event.
#[derive(Debug, Clone, Default)]
pub struct Wakes {
    attempts: Arc<Mutex<Vec<Arc<Notify>>>>,
    pub outbox: Arc<Notify>,
    /// Events got positions: for the subscribers, and for the streams.
    pub subscribers: Arc<Notify>,
    pub streams: Arc<Notify>,
    /// A project's place may have to be made, changed or cleared.
    pub placement: Arc<Notify>,
    placement_waits: Arc<AtomicBool>,
    /// A cluster was registered that this process may be able to serve.
    pub clusters: Arc<Notify>,
}

impl Wakes {
    /// A decision was committed: a resource may be due, an event may wait.
    pub fn wake(&self) {
        let attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.iter().for_each(|listener| listener.notify_one());
        self.outbox.notify_one();
    }

    /// A listener of its own for a loop over resources. Each partition has one: a
    /// wake that went to whichever loop waits first would leave the right one
    /// to its poll, and one that is sent to all and kept by nobody would be
    /// lost on a loop that is busy.
    pub fn listen(&self) -> Arc<Notify> {
        let listener = Arc::new(Notify::new());
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.push(Arc::clone(&listener));
        listener
    }

    /// A project's place may have to be made, changed or cleared: its cluster is
    /// looked at now and not at the next interval.
    pub fn wake_placement(&self) {
        self.placement_waits.store(true, Ordering::Relaxed);
        self.placement.notify_one();
    }

    /// Whether somebody asked since the last time that this was asked.
    pub fn placement_waits(&self) -> bool {
        self.placement_waits.swap(false, Ordering::Relaxed)
    }

    /// Events were given positions and can be read.
    pub fn relayed(&self) {
        self.subscribers.notify_one();
        self.streams.notify_one();
    }
}
