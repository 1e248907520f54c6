//! Decisions of the placement loop about project namespaces, what is in them, and
//! definitions.

pub mod definitions;
pub mod namespace;
pub mod residents;
