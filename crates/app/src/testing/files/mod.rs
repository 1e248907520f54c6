//! Documents on a store: what applying them does, kind by kind.

pub(super) mod client;
mod fleet;
mod model;
mod suite;

pub(in crate::testing) use client::context;
pub use model::files_model;
pub use suite::files;
