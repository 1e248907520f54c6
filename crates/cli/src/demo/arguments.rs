//! `slipway demo` on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use slipway_core::secret::Secret;

use crate::arguments::{parse_duration, parse_secret};

#[derive(Debug, Clone, Args)]
pub struct DemoArguments {
    /// What makes the nodes: processes of this machine, or Crossplane on a cluster
    #[arg(long, value_enum, default_value_t)]
    pub substrate: DemoSubstrate,
    /// The way to that cluster. Something has to play Crossplane there, and the kind of the
    /// demo's composites has to be known: see docs/operations.md
    #[arg(long, value_name = "FILE", required_if_eq("substrate", "crossplane"))]
    pub kubeconfig: Option<PathBuf>,
    /// Run on this database (postgres://… or sqlite:PATH) instead of a SQLite file of its own.
    /// The rows of the demo stay there: a project, its resources, events, audit and a key
    #[arg(long, value_name = "URL", hide_env_values = true, value_parser = parse_secret)]
    pub database_url: Option<Secret>,
    /// Give up after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub timeout: Duration,
}

/// Where the demo runs its nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DemoSubstrate {
    #[default]
    Local,
    Crossplane,
}

impl DemoSubstrate {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Crossplane => "crossplane",
        }
    }
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway demo",
    "slipway demo --timeout 120s",
    "slipway demo --substrate crossplane --kubeconfig east.yaml",
];
