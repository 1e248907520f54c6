//! Fleet on a store: the use-cases one after the other, and pairs of them at once.

mod client;
mod deleting;
mod differing;
mod explaining;
mod idle;
mod leaving;
mod model;
mod offering;
mod races;
mod rolling;
mod suite;
mod things;

pub use idle::IdleAgent;
pub use model::fleet_model;
pub use suite::{fleet, fleet_races};
