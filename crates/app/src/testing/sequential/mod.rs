//! The sequential half: each method and each rule, one after the other.

mod abandon;
mod aborts;
mod batches;
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
mod proofs;
mod records;
mod renewals;
mod retries;
mod suite;
mod tasks;

pub use suite::conformance;
