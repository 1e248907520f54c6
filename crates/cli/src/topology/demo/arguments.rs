//! `slipway workspace demo` on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::arguments::parse_duration;

#[derive(Debug, Clone, Args)]
pub struct WorkspaceDemoArguments {
    /// Make the servers in a project of Hetzner Cloud, by the API at this URL (https, or http
    /// for loopback), instead of as local nodes. The token is sent there
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub hetzner: Option<String>,
    /// The file with the token of that project. Slipway must not use the project otherwise
    #[arg(long, value_name = "FILE", requires = "hetzner")]
    pub token_file: Option<PathBuf>,
    /// Give up after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "90s")]
    pub timeout: Duration,
}
