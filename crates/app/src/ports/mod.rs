//! The ports: what the application needs from outside, in its own words.
//! Adapters implement them; the conformance suites in `testing` check them.
//! The store port of a domain stands in its room; [`store`] contains what these
//! share.

#[macro_use]
mod port;
pub mod clock;
pub mod kind;
pub mod listed;
pub mod meter;
pub mod store;
pub mod substrate;
pub mod templates;

pub use clock::{Clock, Entropy};
pub use kind::{KindStore, SubjectOf};
pub use listed::Listed;
pub use meter::Meter;
pub use store::Stores;
pub use substrate::Substrate;
pub use templates::TemplateRenderer;

pub use crate::access::port::AccessStore;
pub use crate::broker::port::BrokerStore;
pub use crate::catalog::port::CatalogStore;
pub use crate::deletion::port::DeletionStore;
pub use crate::events::port::EventStore;
pub use crate::events::sink::EventSink;
pub use crate::files::port::FilesStore;
pub use crate::fleet::port::FleetStore;
pub use crate::nodes::port::NodeStore;
pub use crate::operations::port::OperationsStore;
pub use crate::placement::definitions::Definitions;
pub use crate::placement::management::Management;
pub use crate::placement::port::PlacementStore;
pub use crate::rollouts::port::RolloutStore;
pub use crate::tenants::port::TenantStore;
pub use crate::topology::port::TopologyStore;
