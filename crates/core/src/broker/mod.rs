//! The broker: resources that people declare, the attempts that fill them, the
//! eight phases, and every decision on their way to Ready and out.
//!
//! Reading order: the state machine ([`phase`]), the aggregates, what a decision
//! may know ([`snapshot`]), the decision of a tick ([`decide`]) and what it writes
//! ([`record`]), then what people ask for.

pub mod observation;
pub mod phase;

pub mod attempt;
pub mod event;
pub mod resource;
pub mod snapshot;
pub mod write;

pub mod decide;
pub mod deletion_verification;
pub mod flapping;
pub mod history;
pub mod prepare;
pub mod record;
pub mod transition;

pub mod abandon;
pub mod declare;
pub mod delete;
pub mod holding;
pub mod orphan;
pub mod redeclare;
pub mod replace;
pub mod retry;
pub mod surge;
mod teardown;
pub mod update;

pub mod waiting;

pub use write::{BrokerWrite, Labelled};
