//! The domain, pure and synchronous: the entities, the rules they obey, and
//! what a decision writes. It reads no clock, draws no random number and does
//! no I/O; time, identity and randomness come in as values. To learn *why*
//! Slipway does something, read this crate and nothing else.
//!
//! Reading order: the vocabulary ([`ids`], [`time`], [`text`], [`secret`]), the
//! state machine ([`phase`]), the aggregates ([`resource`],
//! [`provisioned_resource`], [`blueprint`], [`token`], [`node`], [`deletion`]),
//! the [`catalog`] that must exist before them, what is reported about them
//! ([`event`], [`blocker`], [`audit`]), and the [`rules`]: pure functions from
//! a [`snapshot`] to a [`commit`] or a [`error::Refusal`]. A tick of the
//! resource loop calls two of them: [`rules::decide`] before the action,
//! [`rules::record`] after it.

mod closed_set;
pub mod ids;
pub mod nearest;
pub mod secret;
pub mod text;
pub mod time;

pub mod observation;
pub mod phase;

pub mod api_key;
pub mod blueprint;
pub mod catalog;
pub mod definitions;
pub mod deletion;
pub mod keys;
pub mod leak;
pub mod mesh;
pub mod node;
pub mod parameters;
pub mod placement;
pub mod provisioned_resource;
pub mod resource;
pub mod shared_objects;
pub mod token;

pub mod access;
pub mod audit;
pub mod blocker;
pub mod error;
pub mod event;
pub mod explanation;

pub mod commit;
pub mod idempotency;
pub mod precondition;
pub mod rate;
pub mod rules;
pub mod snapshot;

#[cfg(any(test, feature = "testing"))]
pub mod fixtures;

pub use error::{ErrorKind, Refusal};
pub use phase::{Action, Phase, next};
pub use time::Timestamp;
