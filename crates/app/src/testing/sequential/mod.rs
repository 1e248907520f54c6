//! The sequential half: each method and each rule, one after the other.

mod abandon;
mod aborts;
pub(super) mod approvals;
mod batches;
pub(super) mod brakes;
mod claims;
mod control;
mod counts;
mod decisions;
mod declarations;
mod deletions;
mod events;
mod explain;
mod holding;
mod leaks;
mod lifecycle;
mod lists;
mod plans;
mod proofs;
mod records;
mod renewals;
mod retries;
mod suite;
mod tasks;

pub use suite::conformance;
