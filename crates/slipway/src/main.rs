//! The binary: parses the command line, starts the runtime that the command
//! needs, and turns the outcome into an exit code. Everything else lives in
//! the crates it composes.

mod adapters;
mod arguments;
mod config;
mod event_log;
mod up;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match &arguments.command {
        // A node agent idles for months beside the work of its machine.
        Command::Agent(_) => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        Command::Up(_) | Command::Client(_) => {
            tokio::runtime::Builder::new_multi_thread().enable_all().build()
        }
    };
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run(arguments));
            // File work that hangs must not keep the process.
            runtime.shutdown_timeout(Duration::from_secs(1));
            code
        }
        Err(error) => report("runtime_failed", &error.to_string()),
    }
}

async fn run(arguments: Arguments) -> ExitCode {
    match arguments.command {
        Command::Up(layer) => match up::up(layer).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(error.code(), &error.to_string()),
        },
        Command::Agent(agent) => {
            adapters::log_to_stderr(config::LogFormat::Text);
            match slipway_agent::node::run(agent.into()).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report("agent_failed", &error.to_string()),
            }
        }
        Command::Client(command) => slipway_cli::run(command, arguments.client).await,
    }
}

#[expect(clippy::print_stderr, reason = "the last word of a command that failed")]
fn report(code: &str, message: &str) -> ExitCode {
    eprintln!("error[{code}]: {message}");
    ExitCode::FAILURE
}
