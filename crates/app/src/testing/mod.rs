//! The conformance suite of the store ports, for every adapter to run.
//!
//! [`conformance`] is the sequential half: each method and each rule, one after
//! the other. [`races`] is the other half: pairs of operations on one resource
//! at the same moment, many rounds, with the invariants checked after each. A
//! store that passes the first and not the second is wrong; the second tests
//! the locking.
//!
//! [`deletion_model`] compares random sequences of deletions with a model.
//!
//! [`bad_row`] tests how the store treats a row that breaks an invariant; only
//! the adapter's own tests can make one, so they pass in a function for it.
//! [`bad_seams`] does the same for what a deregistration needs, [`bad_event`] for a row of
//! the outbox, [`expired_key`] for an expired idempotency key.
//!
//! All expect a store that nobody else uses and panic on the first violation.
//! They use the store through its ports alone.

mod access;
mod bad_event;
mod bad_row;
mod batch_races;
mod catalog;
mod deletion_model;
mod deletion_races;
mod files;
mod fleet;
mod installed_keys;
mod invariants;
mod mesh;
mod pairs;
mod purges;
mod races;
mod renewal_races;
mod rollouts;
mod sequential;
mod substrate;
mod surges;
mod topology;
mod updates;
mod worker;
mod world;

pub use bad_event::{Spoil, bad_event};
pub use bad_row::{BadSeam, bad_row, bad_seams};
pub use catalog::expired_key;
pub use deletion_model::{Dice, deletion_model};
pub use files::{files, files_model};
pub use fleet::{IdleAgent, fleet, fleet_model, fleet_races};
pub use races::races;
pub use sequential::conformance;
pub use topology::{topology, topology_races};
