//! Placement: clusters, which project is placed on which, and the definitions
//! of blueprints on them.

mod clusters;
mod definitions;
mod rows;

pub(crate) use rows::rows;
