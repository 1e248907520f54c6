//! Placement: clusters, and what the placement loop brings to them: the
//! namespace of a project with its shared objects, and definitions.

pub mod definitions;
pub mod management;
pub mod port;

pub mod clusters;
pub mod reconcile;
