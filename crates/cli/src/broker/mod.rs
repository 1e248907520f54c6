//! Resources: what operators declare.

pub(crate) mod resource;
pub(crate) mod target;
