//! Serde types of the protocols that Slipway speaks. No behaviour but that of reading
//! them ([`parse`]), and no dependency on the domain: both ends of a wire may use this crate, and a
//! change here is a change of a published contract.
//!
//! Our own JSON API under `/api/v1` has a module per room, and beside them what all rooms
//! use: [`problem`] (the error document), [`list`], [`blocker`]. Requests refuse unknown
//! fields; answers may gain fields. Ids are UUIDs in canonical text, times RFC 3339 in UTC.
//! [`nodes::plexd`] is the node protocol under `/v1`, both generations of it. [`fleet`] is the
//! protocol of Fleet's agents and clients, which ignores unknown fields.

pub mod blocker;
pub mod list;
pub mod parse;
pub mod problem;

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
