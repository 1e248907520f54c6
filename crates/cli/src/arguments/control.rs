//! The mode of the installation on the command line.

use std::time::Duration;

use clap::Args;

use super::parse_duration;

#[derive(Debug, Clone, Args)]
pub struct FreezeArguments {
    /// Why; kept in the audit and shown with every resource that waits
    #[arg(long)]
    pub reason: String,
    /// When it ends by itself, 7 days (168h) at most
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, default_value = "1h")]
    pub length: Duration,
    /// Wait until no action that began before is under way on any replica
    #[arg(long)]
    pub wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2m", requires = "wait")]
    pub timeout: Duration,
}

#[derive(Debug, Clone, Args)]
pub struct ReasonArguments {
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: String,
}
