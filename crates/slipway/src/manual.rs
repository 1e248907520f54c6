//! Generates completions, manual pages, `docs/cli.md`, `docs/openapi.json` and
//! `docs/blueprint-metadata.schema.json`.

mod markdown;

use std::io::{self, Write as _};
use std::path::Path;

use slipway_cli::Exit;

use crate::arguments::{Subject, command_line};
use crate::error::Error;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit, Error> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "slipway", &mut text);
    print(&text)
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
