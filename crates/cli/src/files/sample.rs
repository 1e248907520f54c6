//! `slipway sample`: documents to begin with.

use crate::terminal::Terminal;

/// Also in the repository, for those who read before they run.
const SAMPLE: &str = include_str!("../../../../deploy/samples/sample.yaml");

pub(crate) const EXAMPLES: &[&str] = &["slipway sample"];

/// Prints them, to be kept in a file.
pub(crate) fn run(terminal: &mut Terminal) {
    terminal.print(SAMPLE);
}
