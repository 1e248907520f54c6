//! The launcher of a control plane: `slipway up` as a process of a test, of the
//! soak or of the fuzzer.
//!
//! It chooses the port, keeps the log, notices when the process serves, and
//! kills, pauses and restarts it on the same data. The agents of the local
//! engine are found by the folder that they were started for.
//!
//! Must not: know what the API means. Whoever declares something through it
//! brings its own words; [`Client`] only carries them.

mod agents;
mod client;
mod config;
mod launcher;

pub use agents::{agents_below, signal_agent};
pub use client::{Answer, Client};
pub use config::{Config, clean};
pub use launcher::ControlPlane;
