//! Resources: what operators declare.

mod orphan;
pub(crate) mod resource;
pub(crate) mod target;
