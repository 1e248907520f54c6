//! Where a command reads and writes. A value instead of the process's streams,
//! so that tests see what a person would see.

use std::fmt;
use std::io::{self, BufRead, BufReader, IsTerminal, Read as _, Write};
use std::os::fd::AsFd;

use slipway_core::secret::Secret;

use crate::arguments::Output;
use crate::error::Error;

/// Longer than any key.
const LONGEST_SECRET: u64 = 4_096;

/// The streams of a command, and their traits.
pub struct Terminal {
    output: Box<dyn Write + Send>,
    errors: Box<dyn Write + Send>,
    input: Box<dyn BufRead + Send>,
    traits: Traits,
    /// Standard error shows a live line, which the next one replaces.
    live: bool,
    /// The first result that could not be written.
    failure: Option<io::Error>,
    /// The reader of the results closed the pipe.
    closed: bool,
    /// Columns of standard error, if it is a terminal.
    errors_width: Option<u16>,
}

/// What the streams can do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traits {
    /// A person can answer questions.
    pub asks: bool,
    /// Standard error is a terminal: a line can be redrawn in place.
    pub redraws: bool,
    /// The output is a terminal, and colours are not turned off.
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
        let columns = |stream: &dyn AsFd| {
            let size = rustix::termios::tcgetwinsize(stream).ok()?;
            (size.ws_col > 0).then_some(size.ws_col)
        };
        let errors_width = columns(&errors).filter(|_| errors.is_terminal());
        let traits = Traits {
            asks: io::stdin().is_terminal() && errors.is_terminal(),
            redraws: errors.is_terminal() && !plain,
            colours: shown && !plain,
            width: columns(&output).filter(|_| shown),
        };
        let input = Box::new(BufReader::new(io::stdin()));
        let streams = Self::new(Box::new(output), Box::new(errors), input, traits);
        Self { errors_width, ..streams }
    }

    pub fn new(
        output: Box<dyn Write + Send>,
        errors: Box<dyn Write + Send>,
        input: Box<dyn BufRead + Send>,
        traits: Traits,
    ) -> Self {
        let (live, closed, failure, errors_width) = (false, false, None, None);
        Self { output, errors, input, traits, live, failure, closed, errors_width }
    }

    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Prints a result. Keeps a write error for the end of the command, which
    /// then fails by [`Terminal::take_failure`].
    pub(crate) fn print(&mut self, text: &str) {
        self.finish_live();
        let written = writeln!(self.output, "{text}").and_then(|()| self.output.flush());
        match written {
            Ok(()) => {}
            // A reader that closes the pipe early is no failure of the command.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                self.failure.get_or_insert(error);
            }
        }
    }

    /// Whether further output is neither read nor writable.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed || self.failure.is_some()
    }

    /// The error because of which the result is missing or incomplete.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Shows a message about the result. A write error is ignored, here and
    /// below: there is nowhere left to report it, and the result does not
    /// depend on it.
    pub(crate) fn say(&mut self, text: &str) {
        match self.errors_width {
            Some(width) => self.write_error(&wrap(text, usize::from(width))),
            None => self.write_error(text),
        }
    }

    fn write_error(&mut self, text: &str) {
        self.finish_live();
        let _ = writeln!(self.errors, "{text}");
        let _ = self.errors.flush();
    }

    /// Shows why a command failed: for people in lines that fit, for programs as it is.
    pub fn fail(&mut self, error: &Error, output: Output) {
        let text = error.render(output);
        if output == Output::Json { self.write_error(&text) } else { self.say(&text) }
    }

    /// Replaces the live line, on terminals that can redraw.
    pub(crate) fn redraw(&mut self, text: &str) {
        let width = usize::from(self.traits.width.unwrap_or(80)).saturating_sub(1);
        let shown: String = text.chars().take(width).collect();
        let _ = write!(self.errors, "\r\u{1b}[2K{shown}");
        let _ = self.errors.flush();
        self.live = true;
    }

    /// Ends the live line and continues below it.
    pub(crate) fn finish_live(&mut self) {
        if std::mem::take(&mut self.live) {
            let _ = writeln!(self.errors);
        }
    }

    /// Refuses before anything is sent: a script without `--yes` fails whether
    /// or not what it names exists.
    pub(crate) fn can_agree(&self, agreed: bool) -> Result<(), Error> {
        if agreed || self.traits.asks {
            return Ok(());
        }
        Err(Error::Usage("this wants --yes where nobody can be asked; nothing was done".to_owned()))
    }

    /// Requires consent to something irrevocable: by `--yes`, or by an answer
    /// to this question. Without a terminal it refuses.
    pub(crate) fn agree(&mut self, agreed: bool, question: &str) -> Result<(), Error> {
        self.can_agree(agreed)?;
        if agreed || self.confirm(question) { Ok(()) } else { Err(Error::Declined) }
    }

    /// The same as [`Self::can_agree`] for something that a name has to be typed for.
    pub(crate) fn can_type(&self, confirmed: Option<&str>) -> Result<(), Error> {
        if confirmed.is_some() || self.traits.asks {
            return Ok(());
        }
        let problem =
            "this wants --confirm with its name where nobody can be asked; nothing was done";
        Err(Error::Usage(problem.to_owned()))
    }

    /// The name as the user typed it: in the flag, or here. The server compares what the
    /// flag says.
    pub(crate) fn typed(
        &mut self,
        confirmed: Option<String>,
        name: &str,
        harm: &str,
    ) -> Result<String, Error> {
        self.can_type(confirmed.as_deref())?;
        if let Some(confirmed) = confirmed {
            return Ok(confirmed);
        }
        let typed = self.ask(&format!("{harm}. Type `{}` to go on:", clean(name)));
        typed.filter(|typed| typed == name).ok_or(Error::Declined)
    }

    /// Reads a secret: from the person, without showing what is typed, or from the input.
    pub(crate) fn secret(&mut self, question: &str) -> Result<Secret, Error> {
        let text = if self.traits.asks {
            let hidden = echo::Hidden::begin();
            let answer = self.ask(question);
            drop(hidden);
            // The line end was not shown either.
            let _ = writeln!(self.errors);
            answer.unwrap_or_default()
        } else {
            let mut text = String::new();
            // Nothing that can be read is nothing.
            let _ = (&mut self.input).take(LONGEST_SECRET).read_to_string(&mut text);
            text.trim().to_owned()
        };
        match text.as_str() {
            "" => Err(Error::Usage("no key was given; nothing was done".to_owned())),
            text => Ok(Secret::new(text)),
        }
    }

    /// Asks for a yes. Anything else, and the end of the input, is a no.
    fn confirm(&mut self, question: &str) -> bool {
        let answer = self.ask(&format!("{question} [y/N]")).unwrap_or_default();
        ["y", "yes"].contains(&answer.to_ascii_lowercase().as_str())
    }

    /// The answer to a question; `None` if the input cannot be read.
    fn ask(&mut self, question: &str) -> Option<String> {
        self.finish_live();
        let _ = write!(self.errors, "{question} ");
        let _ = self.errors.flush();
        let mut answer = String::new();
        self.input.read_line(&mut answer).ok()?;
        Some(answer.trim().to_owned())
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("traits", &self.traits).finish_non_exhaustive()
    }
}

/// Breaks lines between words, so that none is longer than `width` but for a word
/// that is; what was one line stays together by its indentation.
fn wrap(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.chars().count() <= width {
            lines.push(line.to_owned());
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let mut current = " ".repeat(indent);
        for word in line.split_whitespace() {
            let is_first = current.trim().is_empty();
            let space = usize::from(!is_first);
            if !is_first && current.chars().count() + space + word.chars().count() > width {
                lines.push(std::mem::replace(&mut current, " ".repeat(indent + 2)));
            } else if !is_first {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines.join("\n")
}

/// Makes foreign text harmless: a control character could move the cursor, and
/// a line end could forge a line of ours.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What a person types is not shown meanwhile.
mod echo {
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    pub(super) struct Hidden {
        before: Termios,
    }

    impl Hidden {
        /// `None` if standard input is no terminal.
        pub(super) fn begin() -> Option<Self> {
            let before = tcgetattr(std::io::stdin()).ok()?;
            let mut quiet = before.clone();
            quiet.local_modes.remove(LocalModes::ECHO);
            tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet).ok()?;
            Some(Self { before })
        }
    }

    impl Drop for Hidden {
        fn drop(&mut self) {
            // If the terminal is gone, nobody sees it.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_are_broken_between_words_and_stay_together() {
        let text = "error[x]: one two three four\n  field: aaaaaaaaaaaaaaaaaaaaaa b\n";
        let wrapped =
            "error[x]: one\n  two three four\n  field:\n    aaaaaaaaaaaaaaaaaaaaaa\n    b";
        assert_eq!(wrap(text, 16), wrapped);
        assert_eq!(wrap("a   b", 80), "a   b");
    }
}
