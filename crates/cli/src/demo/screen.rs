//! The output of the demo: a timeline, and the facts that it checks.

use std::fmt::Display;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::error::Error;
use crate::output::{BOLD, GREEN, RED, coloured};
use crate::terminal::{Terminal, clean};

/// Something that must be true, with what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    name: String,
    holds: bool,
    expected: String,
    seen: String,
}

impl Fact {
    pub(crate) fn new(
        name: impl Into<String>,
        holds: bool,
        expected: impl Display,
        seen: impl Display,
    ) -> Self {
        Self { name: name.into(), holds, expected: expected.to_string(), seen: seen.to_string() }
    }

    pub(crate) fn equal(
        name: impl Into<String>,
        expected: impl Display,
        seen: impl Display,
    ) -> Self {
        let (expected, seen) = (expected.to_string(), seen.to_string());
        Self { name: name.into(), holds: expected == seen, expected, seen }
    }

    #[cfg(test)]
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }

    #[cfg(test)]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// What takes longer does not come about. It is for a machine that is busy with something
/// else; each of these takes a second or two.
const CONVERGE_LIMIT: Duration = Duration::from_secs(30);
const PACE: Duration = Duration::from_millis(100);

/// Observes until what is seen is what is expected. If that does not come about, the fact
/// fails and the story ends.
pub(crate) async fn expect(
    screen: &mut Screen<'_>,
    fact: &str,
    expected: &str,
    observe: impl AsyncFn() -> Result<String, Error>,
) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        let seen = observe().await?;
        let holds = seen == expected;
        if holds || begun.elapsed() > CONVERGE_LIMIT {
            screen.check(Fact::equal(fact, expected, &seen));
            return match holds {
                true => Ok(()),
                false => Err(Error::Demo(format!("not within {CONVERGE_LIMIT:?}: {fact}"))),
            };
        }
        sleep(PACE).await;
    }
}

/// Where lines go, and how many facts held.
#[derive(Debug)]
pub(crate) struct Screen<'a> {
    terminal: &'a mut Terminal,
    /// Show the timeline on standard error and only the last line on output.
    beside: bool,
    begun: Instant,
    facts: usize,
    failed: Vec<String>,
}

const FAINT: &str = "2";

impl<'a> Screen<'a> {
    pub(crate) fn new(terminal: &'a mut Terminal, beside: bool) -> Self {
        Self { terminal, beside, begun: Instant::now(), facts: 0, failed: Vec::new() }
    }

    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    pub(crate) fn facts(&self) -> usize {
        self.facts
    }

    pub(crate) fn failed(&self) -> &[String] {
        &self.failed
    }

    pub(crate) fn heading(&mut self, text: &str) {
        let text = self.painted(BOLD, text);
        self.line(&format!("\n{text}"));
    }

    /// Shows something that happened at a moment of the timeline.
    pub(crate) fn event(&mut self, seconds: f64, who: &str, what: &str) {
        let time = self.painted(FAINT, &format!("{seconds:>6.1}s"));
        self.line(&format!("{time}  {who:<12} {}", clean(what)));
    }

    /// Shows something that happens now.
    pub(crate) fn now(&mut self, who: &str, what: &str) {
        self.event(self.begun.elapsed().as_secs_f64(), who, what);
    }

    pub(crate) fn check(&mut self, fact: Fact) {
        self.facts += 1;
        if fact.holds {
            let mark = self.painted(GREEN, "ok");
            self.line(&format!("     {mark}  {}", clean(&fact.name)));
            return;
        }
        let mark = self.painted(RED, "FAILED");
        self.line(&format!("{:>7}  {}", mark, clean(&fact.name)));
        self.line(&format!("         expected: {}", clean(&fact.expected)));
        self.line(&format!("         seen:     {}", clean(&fact.seen)));
        self.failed.push(fact.name);
    }

    /// Prints the last line, which is for programs.
    pub(crate) fn result(&mut self, line: &str) {
        self.terminal.print(line);
    }

    pub(crate) fn line(&mut self, text: &str) {
        if self.beside {
            self.terminal.say(text);
        } else {
            self.terminal.print(text);
        }
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.terminal.traits().colours && !self.beside {
            coloured(colour, text)
        } else {
            text.to_owned()
        }
    }
}
