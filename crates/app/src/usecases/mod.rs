//! The use-cases, one file each. A use-case authorises, gathers outside facts,
//! has the store decide by a pure rule of the core, and wakes the loop.

pub mod catalog;
pub mod control;
pub mod idempotency;

pub mod declare;
pub mod delete;
pub mod events;
pub mod explain;
pub mod force;
pub mod leaks;
pub mod placement;
pub mod read;
pub mod relabel;
pub mod retry;

pub mod audit;
pub mod authenticate;
pub mod enrol;
pub mod keys;
pub mod node;
pub mod tokens;

pub mod converge;
