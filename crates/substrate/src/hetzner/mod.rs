//! Engine `hetzner`: a resource is one server in a project of Hetzner Cloud, which a node
//! enrols from by its user data. A cluster of this engine is such a project.
//!
//! * `shapes`, `endpoint`, `token`, `error`, `client`: a thin client of the API.
//! * `budget`, `http_date`: the rate limit, shared by all replicas through the provider's own
//!   count.
//! * `identity`: which project this is, by an object that this installation puts there.
//! * `high_water_mark`: a counter at that object that reveals a restored database.
//! * `labels`: what a server says about itself, since its user data cannot be read back.
//! * `servers`: the servers of this installation, in memory.
//! * `observe`, `act`, `capacity`: observe, apply and delete servers.
//! * `inventory`: lists all servers, for the leak scan.
//! * `engine`: implements the substrate port with these modules.

mod act;
mod budget;
mod capacity;
mod client;
mod endpoint;
mod engine;
mod error;
mod high_water_mark;
mod http_date;
mod identity;
mod inventory;
mod labels;
mod observe;
mod servers;
mod shapes;
mod token;

pub use client::ProjectAccess;
pub use endpoint::{DEFAULT as DEFAULT_ENDPOINT, Endpoint, InvalidEndpoint};
pub use engine::{HetznerConfig, HetznerSubstrate};
pub use identity::project_uid;
pub use token::TokenFile;
