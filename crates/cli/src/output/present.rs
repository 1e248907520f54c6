//! Output for the commands that the binary adds, in the style of the commands
//! of this crate.

use serde::Serialize;

use super::render;
use crate::arguments::Output;
use crate::error::Error;
use crate::terminal::{Terminal, Traits};

/// Shows one document on the streams of this process.
pub fn present<T: Serialize>(
    document: &T,
    output: Output,
    table: impl FnOnce(&T, Traits) -> String,
) -> Result<(), Error> {
    let mut terminal = Terminal::of_process();
    let mut traits = terminal.traits();
    if output == Output::Wide {
        traits.width = None;
    }
    terminal.print(&render(document, output, |document| table(document, traits)));
    terminal.take_failure().map_or(Ok(()), |error| Err(Error::Output(error)))
}

/// Shows a message about the result, on standard error.
pub fn say(text: &str) {
    Terminal::of_process().say(text);
}

/// [`Terminal::fail`] on the streams of this process.
pub fn fail(error: &Error, output: Output) {
    Terminal::of_process().fail(error, output);
}

/// [`Terminal::agree`] on the streams of this process.
pub fn agree(agreed: bool, question: &str) -> Result<(), Error> {
    Terminal::of_process().agree(agreed, question)
}
