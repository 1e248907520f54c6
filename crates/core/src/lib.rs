//! The domain, pure and synchronous: the entities, the rules they obey, and
//! what a decision writes. It reads no clock, draws no random number and does
//! no I/O; time, identity and randomness come in as values. To learn *why*
//! Slipway does something, read this crate and nothing else.
//!
//! Every domain is a room, with the same name on every floor. A room holds its
//! entities and its decisions: pure functions from a snapshot and a command to
//! a [`commit`] or a [`error::Refusal`]. They run inside the store's
//! transaction, which retries after a deadlock and may thus run them twice, so
//! they only compute. A tick of the resource loop calls two of them:
//! [`broker::decide`] before the action, [`broker::record`] after it.
//!
//! Beside the rooms stands what all of them use, and closed sets that span
//! rooms ([`subject`], [`ids`], [`event`], [`blocker`], [`error`]).

mod closed_set;
pub mod ids;
pub mod kind;
pub mod nearest;
pub mod secret;
pub mod text;
pub mod time;

pub mod blocker;
pub mod commit;
pub mod error;
pub mod event;
pub mod precondition;
pub mod subject;

pub mod access;
pub mod broker;
pub mod catalog;
pub mod deletion;
pub mod events;
pub mod files;
pub mod fleet;
pub mod nodes;
pub mod operations;
pub mod placement;
pub mod rollouts;
pub mod tenants;
pub mod topology;

#[cfg(any(test, feature = "testing"))]
pub mod fixtures;

pub use broker::phase::{Action, Phase, next};
pub use error::{ErrorKind, Refusal};
pub use time::Timestamp;
