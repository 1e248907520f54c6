//! Completes lines for shells, and generates manual pages, `docs/cli.md`, `docs/openapi.json` and
//! `docs/blueprint-metadata.schema.json`.

mod markdown;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap_complete::CompleteEnv;
use clap_complete::env::Shells;
use slipway_cli::Exit;

use crate::arguments::{Subject, command_line};
use crate::error::Error;

/// A shell that completes sets it to its own name.
const COMPLETE: &str = "SLIPWAY_COMPLETE";

/// The lines that a shell reads at its start; it then asks this program at each TAB.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit, Error> {
    let mut text = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string());
    let completer = completer.unwrap_or_else(|| unreachable!("every shell has one"));
    let written =
        completer.write_registration(COMPLETE, "slipway", "slipway", "slipway", &mut text);
    written.map_err(Error::io("write the completions"))?;
    print(&text)
}

/// Answers a shell that completes a line; `None` if none does.
pub(crate) fn complete(words: &[OsString]) -> Option<ExitCode> {
    std::env::var_os(COMPLETE)?;
    let folder = std::env::current_dir().ok();
    let completed = CompleteEnv::with_factory(command_line)
        .var(COMPLETE)
        .try_complete(words.iter().cloned(), folder.as_deref());
    match completed {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        // A shell that is being typed into is no place for errors.
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// One page per command, as `slipway-resource-create.1`.
pub(crate) fn pages(folder: &Path) -> Result<Exit, Error> {
    let failed = || Error::io(format!("write in {}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed())?;
    clap_mangen::generate_to(command_line(), folder).map_err(failed())?;
    Ok(Exit::Success)
}

/// `cargo xtask generate` writes these, tests compare them.
pub(crate) fn reference(about: Subject) -> Result<Exit, Error> {
    match about {
        Subject::Cli => commands(),
        Subject::Blueprint => {
            print(format!("{:#}\n", slipway_server::metadata_schema()).as_bytes())
        }
        Subject::Documents => {
            print(format!("{:#}\n", slipway_server::document_schema()).as_bytes())
        }
        Subject::Api => print(format!("{:#}\n", slipway_server::openapi_document()).as_bytes()),
    }
}

fn commands() -> Result<Exit, Error> {
    let mut command = command_line();
    // Before `build` only the outermost command has the global options.
    command.build();
    print(markdown::reference(&command).as_bytes())
}

fn print(text: &[u8]) -> Result<Exit, Error> {
    let mut output = io::stdout().lock();
    match output.write_all(text).and_then(|()| output.flush()) {
        Ok(()) => Ok(Exit::Success),
        // The reader closed the pipe early, which is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        Err(error) => Err(Error::io("write to the output")(error)),
    }
}
