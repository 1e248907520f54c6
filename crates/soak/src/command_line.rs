//! What was asked for, and the exit code that answers it.

use std::process::ExitCode;

use crate::options::{Options, USAGE};
use crate::run::run;

/// Carries out a command line without the program's name. The exit code is 0 if
/// nothing was violated, 1 if something was, 2 if the call is not understood.
pub fn command_line(arguments: &[String]) -> ExitCode {
    if let [only] = arguments
        && matches!(only.as_str(), "-h" | "--help")
    {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(wrong) => {
            eprint!("{wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(1)
        }
    }
}
