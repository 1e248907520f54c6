//! For the commands that the binary adds: their results look like those of the
//! commands in here.

use serde::Serialize;

use crate::arguments::Output;
use crate::client::{to_json, to_yaml};
use crate::error::Error;
use crate::terminal::{Terminal, Traits};

/// Shows one document on the streams of this process.
pub fn present<T: Serialize>(
    document: &T,
    output: Output,
    table: impl FnOnce(&T, Traits) -> String,
) -> Result<(), Error> {
    let mut terminal = Terminal::of_process();
    let text = match output {
        Output::Table => table(document, terminal.traits()),
        Output::Json => to_json(document),
        Output::Yaml => to_yaml(document),
    };
    terminal.print(&text);
    terminal.take_failure().map_or(Ok(()), |error| Err(Error::Output(error)))
}

/// Says something about the result, beside it.
pub fn say(text: &str) {
    Terminal::of_process().say(text);
}

/// Goes on once somebody agreed to something irrevocable: by the flag, or by an
/// answer to this question. Without a terminal nobody is asked.
pub fn agree(agreed: bool, question: &str) -> Result<(), Error> {
    let mut terminal = Terminal::of_process();
    if agreed {
        return Ok(());
    }
    if !terminal.traits().asks {
        return Err(Error::Usage(
            "this wants --yes where nobody can be asked; nothing was done".to_owned(),
        ));
    }
    if terminal.confirm(question) { Ok(()) } else { Err(Error::Declined) }
}
