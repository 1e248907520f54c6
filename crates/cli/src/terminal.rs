//! Where a command reads and writes. A value, not the process's streams, so
//! that tests see what a person would see.

use std::fmt;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};

use crate::error::Error;

/// The streams of a command and what they are.
pub struct Terminal {
    output: Box<dyn Write + Send>,
    errors: Box<dyn Write + Send>,
    input: Box<dyn BufRead + Send>,
    traits: Traits,
    /// A live line stands on the error output and is replaced by the next.
    live: bool,
    /// The first result that could not be written.
    failure: Option<io::Error>,
    /// Whoever read the results has seen enough.
    closed: bool,
}

/// What is known of the streams.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traits {
    /// Somebody can be asked.
    pub asks: bool,
    /// The error output is a terminal: a line may be redrawn in place.
    pub redraws: bool,
    /// The output is a terminal and nobody asked for no colours.
    pub colours: bool,
    /// Columns of the output. `None` if it is no terminal: nothing is wrapped.
    pub width: Option<u16>,
}

impl Terminal {
    /// The streams of this process.
    pub fn of_process() -> Self {
        let (output, errors) = (io::stdout(), io::stderr());
        let shown = output.is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let size = rustix::termios::tcgetwinsize(&output).ok();
        let traits = Traits {
            asks: io::stdin().is_terminal() && errors.is_terminal(),
            redraws: errors.is_terminal() && !plain,
            colours: shown && !plain,
            width: size.filter(|size| shown && size.ws_col > 0).map(|size| size.ws_col),
        };
        Self::new(Box::new(output), Box::new(errors), Box::new(BufReader::new(io::stdin())), traits)
    }

    pub fn new(
        output: Box<dyn Write + Send>,
        errors: Box<dyn Write + Send>,
        input: Box<dyn BufRead + Send>,
        traits: Traits,
    ) -> Self {
        Self { output, errors, input, traits, live: false, failure: None, closed: false }
    }

    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// A result. What cannot be written is remembered for the end of the
    /// command, which [`Terminal::take_failure`] then fails.
    pub(crate) fn print(&mut self, text: &str) {
        self.finish_live();
        let written = writeln!(self.output, "{text}").and_then(|()| self.output.flush());
        match written {
            Ok(()) => {}
            // A reader that has seen enough is no failure of the command.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                self.failure.get_or_insert(error);
            }
        }
    }

    /// Nothing that is printed from here on is read, or can be written.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed || self.failure.is_some()
    }

    /// Why a result is not, or not whole, where it was to go.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Something about the result. There is no place left to say that this
    /// could not be written, and the result does not depend on it: it is
    /// dropped, here and below.
    pub(crate) fn say(&mut self, text: &str) {
        self.finish_live();
        let _ = writeln!(self.errors, "{text}");
        let _ = self.errors.flush();
    }

    /// Replaces the live line. Only where lines can be redrawn.
    pub(crate) fn redraw(&mut self, text: &str) {
        let width = usize::from(self.traits.width.unwrap_or(80)).saturating_sub(1);
        let shown: String = text.chars().take(width).collect();
        let _ = write!(self.errors, "\r\u{1b}[2K{shown}");
        let _ = self.errors.flush();
        self.live = true;
    }

    /// Leaves the live line where it is and goes on below it.
    pub(crate) fn finish_live(&mut self) {
        if std::mem::take(&mut self.live) {
            let _ = writeln!(self.errors);
        }
    }

    /// Refuses before anything is sent: a script that forgot `--yes` learns it
    /// whether or not what it names exists.
    pub(crate) fn can_agree(&self, agreed: bool) -> Result<(), Error> {
        if agreed || self.traits.asks {
            return Ok(());
        }
        Err(Error::Usage("this wants --yes where nobody can be asked; nothing was done".to_owned()))
    }

    /// Goes on once somebody agreed to something irrevocable: by `--yes`, or by
    /// an answer to this question. Without a terminal nobody is asked.
    pub(crate) fn agree(&mut self, agreed: bool, question: &str) -> Result<(), Error> {
        self.can_agree(agreed)?;
        if agreed || self.confirm(question) { Ok(()) } else { Err(Error::Declined) }
    }

    /// Asks for a yes. Anything else, and the end of the input, is a no.
    fn confirm(&mut self, question: &str) -> bool {
        self.finish_live();
        let _ = write!(self.errors, "{question} [y/N] ");
        let _ = self.errors.flush();
        let mut answer = String::new();
        let read = self.input.read_line(&mut answer).is_ok();
        read && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("traits", &self.traits).finish_non_exhaustive()
    }
}

/// Text of others, made harmless: a control character could move the cursor,
/// and a line end could forge a line of ours.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
