//! What every use-case is handed: the ports and the settings. Built once, by
//! the binary.

use std::sync::Arc;

use slipway_core::blocker::Deadlines;
use slipway_core::token::TokenLifetimes;
use tokio::sync::Notify;

use crate::ports::{Clock, Entropy, Store};

/// The ports and settings of this process.
#[derive(Debug, Clone)]
pub struct Context {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub wakes: Wakes,
    pub settings: Settings,
}

/// What the domain is configured with.
#[derive(Debug, Clone)]
pub struct Settings {
    pub deadlines: Deadlines,
    pub token_lifetimes: TokenLifetimes,
    /// The `<env>` in tokens and node keys.
    pub token_environment: String,
}

/// Tells the loops of this process that something may have become due. Other
/// replicas find it by polling; a lost wake costs a poll, never an event.
#[derive(Debug, Clone, Default)]
pub struct Wakes {
    pub attempts: Arc<Notify>,
    pub outbox: Arc<Notify>,
}

impl Wakes {
    /// A decision was committed: a resource may be due, an event may wait.
    pub fn wake(&self) {
        self.attempts.notify_one();
        self.outbox.notify_one();
    }
}
