//! `crossplane-standin`: see the library of this crate for what it is.
#![expect(clippy::print_stderr, reason = "a command line tool talks to its user")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use slipway_standin::hetzner::{Boot, Provider, ProviderOptions};
use slipway_standin::{NOTICE, Options, parse_duration, run};
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
    /// Play the API of Hetzner Cloud, until SIGINT or SIGTERM
    Hetzner(HetznerArguments),
    /// Run a node agent, as `slipway agent` does
    Agent {
        #[command(subcommand)]
        agent: AgentCommand,
    },
}

#[derive(Debug, Args)]
struct HetznerArguments {
    /// Where it listens; it says on standard error which port it got
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The token of its one project
    #[arg(long, value_name = "TEXT", default_value = "standin-token")]
    token: String,
    /// Requests an hour
    #[arg(long, value_name = "N", default_value_t = 3_600)]
    limit: u32,
    /// How long a server takes to be made
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_duration)]
    action_time: Duration,
    /// There is no capacity for this TYPE@LOCATION
    #[arg(long = "exhausted", value_name = "OFFER")]
    exhausted: Vec<String>,
    /// What a server boots, in words: {directory} is its folder and {user_data} its document,
    /// such as `slipway agent node --dir {directory}`
    #[arg(long, value_name = "COMMAND", requires = "folder")]
    boot: Option<String>,
    /// Where the folders of the servers are
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
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
    if let Some(Command::Hetzner(arguments)) = arguments.command {
        return hetzner(arguments).await;
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
    tokio::select! {
        ended = run(client, arguments.options) => ended,
        ended = told_to_end() => ended,
    }
}

async fn hetzner(arguments: HetznerArguments) -> anyhow::Result<()> {
    let words = |command: String| command.split_whitespace().map(str::to_owned).collect();
    let boot = arguments.boot.zip(arguments.folder);
    let options = ProviderOptions {
        listen: arguments.listen,
        tokens: BTreeMap::from([(arguments.token, "main".to_owned())]),
        limit: arguments.limit,
        action_time: arguments.action_time,
        boot: boot.map(|(command, folder)| Boot { command: words(command), folder }),
    };
    let provider = Provider::start(options).await?;
    for offer in &arguments.exhausted {
        provider.exhaust(offer, "resource_unavailable");
    }
    eprintln!("This is a stand-in for tests. It is not Hetzner Cloud. Its API: {}", provider.url());
    told_to_end().await
}

/// Waits for SIGINT or SIGTERM.
async fn told_to_end() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
