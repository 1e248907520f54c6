//! Placement: clusters, which project lives on which, and where blueprints are
//! brought to.

mod clusters;
mod definitions;
mod rows;

pub(crate) use rows::rows;
