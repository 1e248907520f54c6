//! `slipway-nickel`: evaluates a workspace file written in Nickel to JSON, within limits.
//!
//! The process that a user starts is the supervisor ([`supervisor`]). It starts this
//! program a second time as the evaluator ([`evaluator`]), which limits itself before it
//! reads anything, and it explains every way in which the evaluator can end.

mod arguments;
mod supervisor;

mod evaluator;
mod folder;
mod schema;
mod sources;

mod evaluation;
mod faults;

mod failure;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::failure::{Exit, Failure};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome =
        if arguments.evaluator { evaluator::run(&arguments) } else { supervisor::run(&arguments) };
    let outcome = outcome.and_then(|output| {
        std::io::stdout().write_all(&output).map_err(|error| {
            Failure::new(Exit::Internal, format!("cannot write the document: {error}"))
        })
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to be told.
            let _closed = std::io::stderr().write_all(&failure.rendered(arguments.errors));
            failure.exit.into()
        }
    }
}
