//! The ports: what the application needs from outside, in its own words.
//! Adapters implement them; the conformance suites in `testing` check them.
//! Each domain has its own store port; [`store`] contains what these share.

#[macro_use]
mod port;
pub mod access;
pub mod broker;
pub mod catalog;
pub mod clock;
pub mod definitions;
pub mod deletion;
pub mod events;
pub mod listed;
pub mod management;
pub mod meter;
pub mod nodes;
pub mod operations;
pub mod placement;
pub mod sink;
pub mod store;
pub mod substrate;

pub use access::AccessStore;
pub use broker::BrokerStore;
pub use catalog::CatalogStore;
pub use clock::{Clock, Entropy};
pub use definitions::Definitions;
pub use deletion::DeletionStore;
pub use events::EventStore;
pub use listed::Listed;
pub use management::Management;
pub use meter::Meter;
pub use nodes::NodeStore;
pub use operations::OperationsStore;
pub use placement::PlacementStore;
pub use sink::EventSink;
pub use store::Stores;
pub use substrate::Substrate;
