//! The launcher of a control plane: runs `slipway up` as a process for a test,
//! the soak or the fuzzer.
//!
//! It chooses the port, keeps the log, detects when the process serves, and
//! kills, pauses and restarts it on the same data. It finds agents of the local
//! engine by the folder that they were started for.
//!
//! Must not: know what the API means. Callers write their own requests;
//! [`Client`] only sends them.

mod agents;
mod client;
mod config;
mod launcher;

pub use agents::{agents_below, signal_agent};
pub use client::{Answer, Client};
pub use config::{Config, clean};
pub use launcher::ControlPlane;
