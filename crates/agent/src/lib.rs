//! The agents that run outside the control plane and talk to it over HTTP.
//! They share no memory and no database with the server: everything they know
//! comes from their own directory and from the wire.
//!
//! * [`node`]: the node agent. It enrols with a bootstrap token, sends
//!   heartbeats, finishes its work when it is asked to drain, and ends by
//!   itself when its directory is gone or the server stays silent.
//! * [`fleet`]: the cluster agent and the directory agent, which bring stacks to a
//!   cluster or to a folder.

mod files;
mod http;
mod retry_delay;
mod secret;

pub mod fleet;
pub mod node;
