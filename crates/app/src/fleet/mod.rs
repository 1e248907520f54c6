//! Fleet: generators, stacks with their objects, templates, agents, and what agents are
//! offered and report.

pub mod agents;
pub mod generators;
pub mod links;
pub mod objects;
pub mod offers;
pub mod overview;
pub mod port;
pub mod principal;
pub mod prunes;
mod renderings;
pub mod reports;
pub mod stacks;
pub mod tags;
pub mod templates;
