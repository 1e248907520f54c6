//! `slipway fleet demo`: Fleet against a real control plane and three real agents, each
//! a process of this same executable. A stack is delivered, a new version rolled out
//! canary first, the stack deleted while one agent is offline, and restored. Each fact is
//! checked where the objects are (the folders of the agents, or the cluster) and through
//! the API.
//!
//! The demo owns what it starts: whether it finishes, fails or is stopped, it ends its
//! agents by their process ids, and removes what they made. After a SIGKILL the agents end
//! by themselves, since their standard input is a pipe that closes with the demo.

mod arguments;
mod run;

mod content;
mod sites;
mod story;

pub(crate) use arguments::{EXAMPLES, FleetCommand};
pub(crate) use run::run;
