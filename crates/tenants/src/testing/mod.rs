//! For those who write a store or steps.
//!
//! [`contract`] and [`claims`] check a [`JobStore`](crate::JobStore) one call after the
//! other, [`races`] with many at the same time; [`executes`] lets an executor work on it.
//! They panic on the first violation, and want a runtime of several threads. Each uses tenants and ids of its own, so they can share
//! a table. [`inject`] and [`twice`] harm steps on purpose.

mod claims;
mod contract;
mod executes;
mod faults;
mod fixtures;
mod races;

pub use claims::claims;
pub use contract::contract;
pub use executes::executes;
pub use faults::{Calls, Fault, inject, recorded, survives_every_fault, twice};
pub use fixtures::{AnyStore, mk_new, quick};
pub use races::races;

use fixtures::{LEASE, claim, claim_of, code, executor, mk_job};
