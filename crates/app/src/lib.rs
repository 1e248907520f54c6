//! The application: ports to the outside world, and the use-cases, one file
//! each, sorted by room. A use-case authorises, gathers outside facts, has the
//! store decide by a pure rule of the core, and wakes the loop. This crate
//! knows no database, no HTTP and no Kubernetes; the adapters do.
//!
//! Each room has a `port` of its own to the store; [`ports`] contains what they
//! share and the ports to everything else.

#[macro_use]
pub mod ports;

pub mod context;
pub mod error;
pub mod kind;
pub mod permits;
pub mod seed;

pub mod access;
pub mod broker;
pub mod catalog;
pub mod deletion;
pub mod events;
pub mod files;
pub mod fleet;
pub mod nodes;
pub mod operations;
pub mod placement;
pub mod rollouts;
pub mod tenants;
pub mod topology;

#[cfg(feature = "testing")]
pub mod testing;

pub use context::Context;
pub use error::Error;
