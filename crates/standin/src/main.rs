//! `crossplane-standin`: see the library of this crate for what it is.
#![expect(clippy::print_stderr, reason = "a command line tool talks to its user")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use slipway_standin::{NOTICE, Options, run};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Runs until SIGINT or SIGTERM. How one composite goes is said by annotations
/// `standin.slipway.dev/<word>` or the text `spec.parameters.standin`
/// (`word=value; word`): ready-after, fail, never-ready, flap, deletion-delay,
/// keep-finalizer, no-node, leave.
#[derive(Debug, Parser)]
#[command(name = "crossplane-standin", version, before_help = NOTICE, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Whom to connect to; what kubectl would take unless said
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node agent, as `slipway agent` does
    Agent {
        #[command(subcommand)]
        agent: AgentCommand,
    },
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// For one node directory
    Node {
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
    },
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let outcome = tokio::runtime::Runtime::new()
        .context("cannot start a runtime")
        .and_then(|runtime| runtime.block_on(carry_out(Arguments::parse())));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn carry_out(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(Command::Agent { agent: AgentCommand::Node { dir } }) = arguments.command {
        let options = slipway_agent::node::NodeOptions { directory: dir };
        return slipway_agent::node::run(options).await.context("the agent cannot go on");
    }
    eprintln!("{NOTICE}");
    let config = match &arguments.kubeconfig {
        Some(path) => {
            let text = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot use {}", path.display()))?;
            Config::from_custom_kubeconfig(text, &KubeConfigOptions::default()).await?
        }
        None => Config::infer().await.context("name a cluster with --kubeconfig")?,
    };
    let client = Client::try_from(config).context("cannot make a client of that cluster")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    tokio::select! {
        ended = run(client, arguments.options) => ended,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
