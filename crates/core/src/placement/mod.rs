//! Placement: clusters, the namespace of a project there with what its resources
//! share, and the definitions that blueprints install.

pub mod abandon;
pub mod cluster;
pub mod definitions;
pub mod namespace;
pub mod provider_config;
pub mod shared_objects;
pub mod write;

pub mod rules;

pub use write::PlacementWrite;
