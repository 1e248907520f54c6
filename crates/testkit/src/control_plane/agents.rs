//! Finds the agents of the local engine in the process table.

use std::path::Path;

use anyhow::Context as _;

use crate::process::{Process, Signal, processes_with_argument, send_signal};

const NO_SUCH_PROCESS: i32 = 3;

/// The living agents of a substrate root. An agent's directory is its last
/// argument, and the directory is named after the composite.
pub fn agents_below(substrate_root: &Path) -> anyhow::Result<Vec<Process>> {
    // Control planes also have the root among their arguments.
    let started_with = format!("agent node --dir {}", substrate_root.display());
    processes_with_argument(&started_with).context("cannot read the process table")
}

/// Signals an agent. An agent that has just ended is not an error.
pub fn signal_agent(pid: u32, signal: Signal) -> anyhow::Result<()> {
    match send_signal(pid, signal) {
        Err(error) if error.raw_os_error() != Some(NO_SUCH_PROCESS) => {
            Err(error).with_context(|| format!("cannot signal the agent {pid}"))
        }
        _ => Ok(()),
    }
}
