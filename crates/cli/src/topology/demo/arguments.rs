//! `slipway workspace demo` on the command line.

use std::time::Duration;

use clap::Args;

use crate::arguments::parse_duration;

#[derive(Debug, Clone, Args)]
pub struct WorkspaceDemoArguments {
    /// Give up after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "90s")]
    pub timeout: Duration,
}
