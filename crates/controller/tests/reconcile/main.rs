//! The resource loop against a real database and a simulated substrate: every
//! walk through the phases that the state machine allows, and a fault at every
//! point of them, on both databases.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod control;
mod crash;
mod orphans;
mod partitions;
mod placement;
mod simulated;
mod slow;
mod ticks;
mod walks;
mod watches;
mod world;
