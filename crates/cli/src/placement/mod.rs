//! Clusters, which project is placed on which, and the definitions on them.

pub(crate) mod cluster;

mod definition;
