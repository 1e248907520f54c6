//! Serde types of the protocols that Slipway speaks. No behaviour and no
//! dependency on the domain: both ends of a wire may use this crate, and a
//! change here is a change of a published contract.
//!
//! * [`api`]: our own JSON API under `/api/v1`.
//! * [`access`]: its part about keys, bootstrap tokens and the audit.
//! * [`leaks`]: its part about leaks.
//! * [`catalog`]: its part about projects, clouds, blueprints and everything
//!   else that a declaration needs.
//! * [`plexd`]: the node protocol under `/v1`, both generations of it.
//! * [`problem`]: the error document of our own API.

pub mod access;
pub mod api;
pub mod catalog;
pub mod leaks;
pub mod plexd;
pub mod problem;
