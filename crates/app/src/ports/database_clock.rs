//! The database's clock, which decides what is due and whose lease is over, and
//! what is to be done when it jumps.

use std::time::Duration;

use async_trait::async_trait;
use slipway_core::time::Timestamp;

use super::store::Error;

/// What is asked of the database about its clock.
#[async_trait]
pub trait DatabaseClock: Send + Sync {
    /// What it shows.
    async fn database_now(&self) -> Result<Timestamp, Error>;

    /// The clock went back by `jump`: what was to be due at a time is due that
    /// much earlier, and leases end that much earlier, but none that may have
    /// been given since, so none that ends within `lease`. Answers how many
    /// rows that concerned. Nothing that is due too early does harm: it is
    /// looked at and found to be in order.
    async fn schedule_pull_in(&self, jump: Duration, lease: Duration) -> Result<u64, Error>;
}
