//! From a parsed command line to an exit code.

use std::process::ExitCode;

use crate::arguments::ClientOptions;
use crate::client::Client;
use crate::command::Command;
use crate::context::{Connection, commands, login};
use crate::demo;
use crate::error::Error;
use crate::exit::Exit;
use crate::files::sample;
use crate::fleet::demo::{self as fleet_demo, FleetCommand};
use crate::renderers::Renderers;
use crate::session::Session;
use crate::tenants::demo as tenant_demo;
use crate::tenants::tenant::TenantCommand;
use crate::terminal::Terminal;
use crate::topology::demo as workspace_demo;
use crate::topology::workspace::WorkspaceCommand;

/// Runs one command on the streams of this process.
pub async fn run(command: Command, options: ClientOptions, renderers: Renderers) -> ExitCode {
    run_on(command, options, renderers, &mut Terminal::of_process()).await.into()
}

/// Runs one command to its end. Shows errors, so the caller only has to exit
/// with the code.
pub async fn run_on(
    command: Command,
    options: ClientOptions,
    renderers: Renderers,
    terminal: &mut Terminal,
) -> Exit {
    let output = options.output;
    let outcome = match command {
        // A demo starts its own server.
        Command::Demo(arguments) => demo::run(&arguments, options.output, terminal).await,
        Command::Fleet(FleetCommand::Demo(arguments)) => {
            let output = options.output;
            Box::pin(fleet_demo::run(&arguments, output, renderers, terminal)).await
        }
        Command::Tenant(TenantCommand::Demo(arguments)) => {
            let output = options.output;
            Box::pin(tenant_demo::run(&arguments, output, renderers, terminal)).await
        }
        Command::Workspace(WorkspaceCommand::Demo(arguments)) => {
            let output = options.output;
            Box::pin(workspace_demo::run(&arguments, output, terminal)).await
        }
        Command::Sample => {
            sample::run(terminal);
            Ok(())
        }
        // These are about connections, and have none yet.
        Command::Context(command) => commands::run(command, &options, terminal),
        Command::Login(arguments) => login::run(arguments, &options, terminal).await,
        command => connected(command, options, renderers, terminal).await,
    };
    // An error of the command itself is more useful than one of its output.
    let outcome = match (outcome, terminal.take_failure()) {
        (Ok(()), Some(error)) => Err(Error::Output(error)),
        (outcome, _) => outcome,
    };
    match outcome {
        Ok(()) => Exit::Success,
        // The difference itself is the result.
        Err(error @ Error::Differs) => error.exit(),
        Err(error) => {
            terminal.fail(&error, output);
            error.exit()
        }
    }
}

async fn connected(
    command: Command,
    options: ClientOptions,
    renderers: Renderers,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let Connection { server, key, ca_file, project, context } = options.connection()?;
    let client = Client::new(&server, key, ca_file.as_deref())?.in_project(project);
    let output = options.output;
    let done = command.execute(&mut Session { client, server, output, renderers, terminal }).await;
    match context {
        Some(context) => done.map_err(|error| error.in_context(&context)),
        None => done,
    }
}
