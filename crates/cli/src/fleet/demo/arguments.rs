//! `slipway fleet …` on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::arguments::parse_duration;

#[derive(Debug, Clone, Subcommand)]
pub enum FleetCommand {
    /// Run Fleet on this machine, check every fact, and leave no process and no file behind
    ///
    /// Three agents are delivered a stack; a new version is rolled out, canary first; the stack
    /// is deleted while one agent is offline, and restored. Ends with 0 only if all of it is
    /// so, in the folders of the agents and by the API. The last line is JSON.
    Demo(FleetDemoArguments),
}

#[derive(Debug, Clone, Args)]
pub struct FleetDemoArguments {
    /// Let one of the agents deploy to this cluster instead of a folder. It makes ConfigMaps in
    /// the namespace `default`, and removes them
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Give up after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub timeout: Duration,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway fleet demo",
    "slipway fleet demo --timeout 120s",
    "slipway fleet demo --kubeconfig east.yaml",
];
