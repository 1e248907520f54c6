//! A real API server behind a proxy that harms requests at random, with the
//! stand-in that plays Crossplane on it, and what a soak knows of the objects
//! there: every change of every object of ours, from watches that do not pass
//! the proxy.
//!
//! Each project has a few handles, so that its last resource goes often, and
//! with it what its resources shared.

mod blueprint;
mod changes;
mod ledger;
mod setup;

mod checks;
mod freeze;
mod operations;

pub(super) use freeze::Frozen;
pub(super) use setup::{Cluster, HANDLES_PER_PROJECT};
