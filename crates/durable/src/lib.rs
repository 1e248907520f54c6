//! The few things that make work survive a crash: leases, fencing tokens,
//! backoff, and the SQL fragments that differ between the two databases.
//!
//! This crate knows no domain and no database driver. It owns the *rules* of
//! claiming a row (who may work on it, for how long, and how a late worker is
//! fenced off) and the text of the statements that apply them; running those
//! statements is the store's business.

mod backoff;
mod claim;
mod dialect;
mod lease;
#[cfg(test)]
mod model;

pub use backoff::Backoff;
pub use lease::{Lease, Moment};
