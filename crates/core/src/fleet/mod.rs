//! Fleet: objects that generators submit in stacks, and agents that bring them to clusters.
//!
//! Reading order: the texts and contents that people give ([`text`], [`content`]), the four
//! things with a name ([`generator`], [`stack`], [`template`], [`agent`]), what hangs on them
//! ([`object`], [`tags`], [`links`]), what an agent is offered ([`offer`], [`per_agent`]), and how
//! far it is ([`progress`]). A leaf is never
//! marked as deleted: it goes and comes back with what it hangs on.

pub mod content;
pub mod text;

pub mod event;
pub mod write;

pub mod agent;
pub mod generator;
pub mod object;
pub mod stack;
pub mod template;

pub mod links;
pub mod members;
pub mod offer;
pub mod overview;
pub mod per_agent;
pub mod progress;
pub mod prune;
pub mod report;
pub mod restore;
pub mod rollout;
pub mod tags;

pub use text::FleetName;
pub use write::FleetWrite;
