//! Engine `local`: a composite is a directory, its node is a process.
//!
//! ```text
//! <root>/substrate.uid              which root this is
//! <root>/substrate.installation     whose it is
//! <root>/slipway-high-water-mark-…  the highest heartbeat, see `high_water_mark`
//! <root>/<namespace>/<name>/        one composite
//!     composite.json                the applied object, with the uid we gave it
//!     user-data                     its injected document, for the agent
//!     agent.lock                    locked by the agent while it runs
//!     agent.log, agent.json, …      written by the agent
//!     failure.json                  a deliberate failure marker
//!     terminating                   a deletion has begun
//! <root>/<namespace>/.new-…         a directory that is being created
//! <root>/.gone/<uid>                a retired directory that is being removed
//! ```
//!
//! Replicas on one host may share a root. Three rules keep them apart: a
//! directory appears and disappears by rename; its files change only under an
//! `flock` of the directory; the agent is the process that holds the record lock
//! on `agent.lock`. The engine may lose its memory at any moment without harm.

mod engine;
mod files;
mod high_water_mark;
mod inventory;
mod node;
mod output;
mod process;
mod root;

pub use engine::{LocalConfig, LocalSubstrate};
