//! Fleet on a store: the use-cases one after the other, and pairs of them at once.

mod client;
mod deleting;
mod offering;
mod races;
mod suite;
mod things;

pub use suite::{fleet, fleet_races};
