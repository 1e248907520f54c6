//! The ports: what the application needs from outside, in its own words.
//! Adapters implement them; the conformance suites in `testing` check them.

pub mod catalog;
pub mod clock;
pub mod lanes;
pub mod leaks;
pub mod renewal;
pub mod store;
pub mod substrate;
pub mod tasks;

pub use catalog::CatalogStore;
pub use clock::{Clock, Entropy};
pub use lanes::LaneStore;
pub use leaks::LeakStore;
pub use renewal::RenewalStore;
pub use store::Store;
pub use substrate::Substrate;
pub use tasks::TaskStore;
