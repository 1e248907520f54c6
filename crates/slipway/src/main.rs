//! The binary: parses the command line, starts the runtime that the command
//! needs, and turns the outcome into an exit code.

mod adapters;
mod agents;
mod arguments;
mod config;
mod doctor;
mod error;
mod event_log;
mod local;
mod manual;
mod metered_substrate;
mod renderers;
mod templates;
mod tenants;
mod up;

use std::process::ExitCode;
use std::time::Duration;

use clap::ArgMatches;
use slipway_cli::{Exit, Output};

use crate::arguments::{Agent, Arguments, Command};
use crate::error::Error;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(exit) = manual::complete(&words) {
        return exit;
    }
    if words.get(1).is_some_and(|word| word == templates::ARGUMENT) {
        return templates::run();
    }
    let (matches, arguments) = match arguments::parse(&words) {
        Ok(parsed) => parsed,
        Err(exit) => return exit,
    };
    let runtime = match &arguments.command {
        // An agent is idle for months, so one thread is enough.
        Command::Agent(Agent::Program(_)) => {
            tokio::runtime::Builder::new_current_thread().enable_all().build()
        }
        _ => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
    };
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run(arguments, &matches));
            // File operations that hang must not keep the process from ending.
            runtime.shutdown_timeout(Duration::from_secs(1));
            code
        }
        Err(error) => {
            let message = error.to_string();
            report("runtime_failed", &message, Exit::Refused, arguments.client.output)
        }
    }
}

async fn run(arguments: Arguments, matches: &ArgMatches) -> ExitCode {
    let output = arguments.client.output;
    let outcome = match arguments.command {
        Command::Up(layer) => up::up(layer, &arguments.client).await.map(|()| Exit::Success),
        Command::Agent(Agent::Client(command)) => {
            let command = slipway_cli::Command::Agent(command);
            return slipway_cli::run(command, arguments.client, renderers::RENDERERS).await;
        }
        Command::Agent(Agent::Program(agent)) => {
            agents::run(agent, &arguments.client).await.map(|()| Exit::Success)
        }
        Command::Client(command) => {
            return slipway_cli::run(command, arguments.client, renderers::RENDERERS).await;
        }
        Command::Config(command) => local::settings::run(command, matches, output),
        Command::Doctor(layer) => doctor::run(*layer, &arguments.client).await,
        Command::Backup(arguments) => local::backup::run(arguments, output).await,
        Command::Restore(arguments) => local::restore::run(arguments, output).await,
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::pages(&folder),
        Command::Reference { about } => manual::reference(about),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(Error::Client(error)) => {
            slipway_cli::fail(&error, output);
            error.exit().into()
        }
        Err(error) => report(error.code(), &error.to_string(), error.exit(), output),
    }
}

fn report(code: &'static str, message: &str, exit: Exit, output: Output) -> ExitCode {
    let (message, errors) = (message.to_owned(), Vec::new());
    slipway_cli::fail(&slipway_cli::Error::Faults { code, message, errors, exit }, output);
    exit.into()
}
