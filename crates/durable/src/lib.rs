//! What makes work survive a crash, for any table: claims with leases and
//! fencing tokens ([`claim`]), backoff, the SQL fragments that differ between the
//! two databases, the only way to a database ([`database`]), the driver of loops
//! ([`driver`]) and the renewal of leases beside the work ([`renewer`]).
//!
//! This crate knows no domain. It owns the *rules* of claiming a row (who may
//! work on it, for how long, and how a late worker is fenced off), the text of
//! the statements that apply them, and the code that runs them. The store owns the
//! tables: one that has the columns of [`claim`] brings its name.
#![expect(clippy::duplicate_mod, reason = "claim/ is compiled once for each database, on purpose")]

mod actions;
mod backoff;
pub mod claim;
pub mod database;
mod dialect;
pub mod driver;
mod lease;
#[cfg(test)]
mod model;
pub mod renewer;

pub use actions::{Actions, EarlierClaims};
pub use backoff::Backoff;
pub use lease::{Lease, Moment};
