//! Parses the command line, runs the soak and returns its exit code.

use std::process::ExitCode;

use crate::options::{Options, USAGE};
use crate::run::run;

/// Runs a command line without the program's name. The exit code is 0 without
/// violations, 1 with violations, 2 if the command line is invalid.
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
