//! `slipway agent cluster` and `slipway agent directory`: the agents of Fleet, which a
//! person or a chart starts; beside them the node agent, which an engine starts. Server, key and authorities are the options that every
//! command has; contexts are for people and do not count here.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use slipway_agent::fleet::{Access, Key, Options, Target};
use slipway_agent::node::NodeOptions;
use slipway_cli::ClientOptions;
use slipway_core::time::parse_duration;

use crate::adapters::{end_of_stdin, log_to_stderr};
use crate::arguments::AgentProgram;
use crate::config::LogFormat;
use crate::error::Error;

/// What both agents take.
#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// The name that the agent must have; the key says who it is
    #[arg(long, env = "SLIPWAY_AGENT_NAME", value_name = "NAME")]
    name: Option<String>,
    /// The name of its cluster that it must have
    #[arg(long, env = "SLIPWAY_AGENT_CLUSTER_NAME", value_name = "NAME")]
    cluster_name: Option<String>,
    /// The id that it must have
    #[arg(long, env = "SLIPWAY_AGENT_ID", value_name = "ID")]
    id: Option<String>,
    /// How often it asks what it should have; a server that can tells it at once
    #[arg(long, env = "SLIPWAY_AGENT_POLL", value_name = "TIME", default_value = "10s")]
    #[arg(value_parser = poll_interval)]
    poll: Duration,
    /// Do what is to be done now, and end; with an error if something is not as it should be
    #[arg(long)]
    once: bool,
    /// Write the log as lines of JSON
    #[arg(long, env = "SLIPWAY_AGENT_LOG_JSON")]
    log_json: bool,
    /// End when standard input ends, so that this does not outlive whoever started it
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    /// The kubeconfig of the cluster [default: the service account of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where the agent keeps its inventory [default: the namespace of the pod, or slipway-agent]
    #[arg(long, env = "SLIPWAY_AGENT_NAMESPACE", value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    agent: AgentArguments,
}

#[derive(Debug, Args)]
pub(crate) struct DirectoryArguments {
    /// The folder; made if it is not there. An agent has it for itself
    #[arg(long, value_name = "DIR")]
    path: PathBuf,
    #[command(flatten)]
    agent: AgentArguments,
}

fn poll_interval(text: &str) -> Result<Duration, String> {
    let shortest = Duration::from_millis(100);
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    if interval < shortest {
        return Err("must be at least 100ms".to_owned());
    }
    Ok(interval)
}

/// Runs any agent.
pub(crate) async fn run(agent: AgentProgram, client: &ClientOptions) -> Result<(), Error> {
    match agent {
        AgentProgram::Cluster(arguments) => {
            let access = arguments.kubeconfig.map_or(Access::InCluster, Access::Kubeconfig);
            let target = Target::Cluster { access, namespace: arguments.namespace };
            run_deploying(target, arguments.agent, client).await
        }
        AgentProgram::Directory(arguments) => {
            let target = Target::Directory { path: arguments.path };
            run_deploying(target, arguments.agent, client).await
        }
        AgentProgram::Node { directory } => {
            log_to_stderr(LogFormat::Text);
            Ok(slipway_agent::node::run(NodeOptions { directory }).await?)
        }
    }
}

async fn run_deploying(
    target: Target,
    arguments: AgentArguments,
    client: &ClientOptions,
) -> Result<(), Error> {
    let missing = |message: &str| slipway_cli::Error::Usage(message.to_owned());
    let server = client
        .server
        .clone()
        .ok_or_else(|| missing("the server is missing: name it with --server or SLIPWAY_SERVER"))?;
    let key = match (&client.key_file, &client.key) {
        (Some(file), _) => Key::File(file.clone()),
        (None, Some(key)) => Key::Text(key.expose().to_owned()),
        (None, None) => {
            let message = "the key of the agent is missing: name its file with --key-file, or set SLIPWAY_KEY";
            return Err(missing(message).into());
        }
    };
    let format = if arguments.log_json { LogFormat::Json } else { LogFormat::Text };
    log_to_stderr(format);
    let options = Options {
        server,
        key,
        ca_file: client.ca_file.clone(),
        id: arguments.id,
        name: arguments.name,
        cluster_name: arguments.cluster_name,
        poll: arguments.poll,
        once: arguments.once,
        target,
    };
    let agent = Box::pin(slipway_agent::fleet::run(options));
    tokio::select! {
        ended = agent => Ok(ended?),
        () = end_of_stdin(), if arguments.stop_with_stdin => Ok(()),
    }
}
