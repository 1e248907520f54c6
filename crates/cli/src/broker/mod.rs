//! Resources: what operators declare.

pub(crate) mod change;
pub(crate) mod logs;
mod orphan;
pub(crate) mod resource;
pub(crate) mod select;
pub(crate) mod target;
