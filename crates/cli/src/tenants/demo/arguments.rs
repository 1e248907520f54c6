//! `slipway tenant demo` on the command line.

use std::time::Duration;

use clap::Args;
use slipway_core::secret::Secret;

use crate::arguments::{parse_duration, parse_secret};

#[derive(Debug, Clone, Args)]
pub struct TenantDemoArguments {
    /// Make the tenants in this PostgreSQL database (postgres://…) instead of SQLite files. The
    /// role needs CREATEROLE, and CREATE on the database. What the demo makes there it removes,
    /// except for the schema `slipway_tenants`
    #[arg(long, value_name = "URL", hide_env_values = true, value_parser = parse_secret)]
    pub database_url: Option<Secret>,
    /// Give up after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub timeout: Duration,
}
