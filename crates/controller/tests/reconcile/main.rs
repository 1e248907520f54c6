//! The resource loop against a real database and a simulated substrate: every
//! way through the phases that the state machine allows, with a fault at every
//! point, on both databases.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod control;
mod crash;
mod orphans;
mod partitions;
mod placement;
mod simulated;
mod slow;
mod ticks;
mod updates;
mod walks;
mod watches;
mod world;
