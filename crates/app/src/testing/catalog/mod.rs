//! The catalog's part of the suite: its sequential half and its races.

mod catalog_client;
mod cluster_races;
mod composites;
mod definitions;
mod idempotency;
mod labels;
mod parameters;
mod placement;
mod placements;
mod races;
mod restores;
mod sequential;
mod suite;

pub use idempotency::expired_key;
pub(super) use suite::{conformance, races};
