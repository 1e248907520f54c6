//! Decisions of the placement loop about project namespaces and definitions.

pub mod definitions;
pub mod namespace;
