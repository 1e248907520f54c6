//! Engine `local`: a composite is a directory, its node a process.
//!
//! ```text
//! <root>/substrate.uid              which root this is
//! <root>/substrate.installation     whose it is
//! <root>/slipway-high-water-mark-…          the highest heartbeat, see `high-water mark`
//! <root>/<namespace>/<name>/        one composite
//!     composite.json                the applied object, with the uid we gave it
//!     user-data                     its injected document, for the agent
//!     agent.lock                    held by the agent for as long as it lives
//!     agent.log, agent.json, …      the agent's own
//!     failure.json                  a deliberate failure marker
//!     terminating                   a deletion has begun
//! <root>/<namespace>/.new-…         being laid out
//! <root>/.gone/<uid>                taken down, being removed
//! ```
//!
//! Replicas on one host may share a root. What keeps them apart: a directory
//! appears and disappears by rename; its files are changed under an `flock` of
//! the directory; the agent is whoever holds the record lock on `agent.lock`.
//! The engine keeps nothing in memory that it could not lose at any moment.

mod engine;
mod files;
mod high_water_mark;
mod inventory;
mod node;
mod process;
mod root;

pub use engine::{LocalConfig, LocalSubstrate};
