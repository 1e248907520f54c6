//! Decisions about clusters, project namespaces and definitions.

pub mod cluster;
pub mod cluster_assignment;
pub mod cluster_choice;
pub mod definitions;
pub mod namespace;
