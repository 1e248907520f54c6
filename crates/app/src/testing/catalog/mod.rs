//! The catalog's part of the suite: its sequential half and its races.

mod composites;
mod deliveries;
mod fleet;
mod hands;
mod idempotency;
mod placements;
mod races;
mod sequential;
mod suite;

pub use idempotency::expired_key;
pub(super) use suite::{conformance, races};
