//! The ports: what the application needs from outside, in its own words.
//! Adapters implement them; the conformance suites in `testing` check them.

pub mod audit;
pub mod catalog;
pub mod clock;
pub mod control;
pub mod database_clock;
pub mod enrolment;
pub mod events;
pub mod keys;
pub mod lanes;
pub mod leaks;
pub mod meter;
pub mod record;
pub mod renewal;
pub mod retention;
pub mod scope;
pub mod sink;
pub mod standing;
pub mod store;
pub mod subscriptions;
pub mod substrate;
pub mod tasks;
pub mod tokens;

pub use audit::AuditStore;
pub use catalog::CatalogStore;
pub use clock::{Clock, Entropy};
pub use control::ControlStore;
pub use database_clock::DatabaseClock;
pub use enrolment::EnrolStore;
pub use events::EventStore;
pub use keys::KeyStore;
pub use lanes::LaneStore;
pub use leaks::LeakStore;
pub use meter::Meter;
pub use record::RecordStore;
pub use renewal::RenewalStore;
pub use retention::RetentionStore;
pub use scope::ScopeStore;
pub use sink::EventSink;
pub use standing::StandingStore;
pub use store::Store;
pub use subscriptions::SubscriptionStore;
pub use substrate::Substrate;
pub use tasks::TaskStore;
pub use tokens::TokenStore;
