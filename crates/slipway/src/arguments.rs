//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use slipway_agent::node::NodeOptions;

use crate::config::Layer;

/// Declare infrastructure and watch it come up; delete it and watch it leave
/// in order.
#[derive(Debug, Parser)]
#[command(
    name = "slipway",
    version,
    propagate_version = true,
    arg_required_else_help = true, after_help = slipway_cli::EXIT_CODES
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) client: slipway_cli::ClientOptions,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the control plane on this machine.
    Up(Box<Layer>),
    /// Run an agent; started by an engine, seldom by a person.
    Agent(Agent),
    #[command(flatten)]
    Client(slipway_cli::Command),
}

#[derive(Debug, Args)]
pub(crate) struct Agent {
    #[command(subcommand)]
    kind: AgentKind,
}

#[derive(Debug, Subcommand)]
enum AgentKind {
    /// The node agent of one node directory.
    Node {
        /// The directory that an engine laid out.
        #[arg(long = "dir", value_name = "DIR")]
        directory: PathBuf,
    },
}

impl From<Agent> for NodeOptions {
    fn from(agent: Agent) -> Self {
        let AgentKind::Node { directory } = agent.kind;
        Self { directory }
    }
}
