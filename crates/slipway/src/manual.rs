//! What is generated from the command line: completions, manual pages and
//! `docs/cli.md`.

mod markdown;

use std::io::{self, Write as _};
use std::path::Path;

use clap::CommandFactory;
use slipway_cli::Exit;

use crate::arguments::Arguments;
use crate::local::Error;

/// The command line as it is written about: without what is only for us.
fn command() -> clap::Command {
    let mut command = Arguments::command();
    command.build();
    command
}

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit, Error> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "slipway", &mut text);
    print(&text)
}

/// One page a command, as `slipway-resource-create.1`.
pub(crate) fn pages(folder: &Path) -> Result<Exit, Error> {
    let failed = || Error::io(format!("write in {}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed())?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed())?;
    Ok(Exit::Success)
}

/// `docs/cli.md`; `cargo xtask generate` writes it, a test compares it.
pub(crate) fn reference() -> Result<Exit, Error> {
    print(markdown::reference(&command()).as_bytes())
}

fn print(text: &[u8]) -> Result<Exit, Error> {
    let mut output = io::stdout().lock();
    match output.write_all(text).and_then(|()| output.flush()) {
        Ok(()) => Ok(Exit::Success),
        // A reader that has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        Err(error) => Err(Error::io("write to the output")(error)),
    }
}
