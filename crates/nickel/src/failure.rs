//! Why there is no document: the exit code, a text for people, faults for programs.

use std::process::ExitCode;

use serde::Serialize;

use crate::arguments::ErrorFormat;

/// A file chooses its messages and the names of its fields, so they need a limit. In
/// JSON 20 faults of three such texts take at most 6 times as much, 1.5 MiB.
const LONGEST_MESSAGE: usize = 4 * 1024;
const LONGEST_TEXT: usize = 256 * 1024;

/// The exit codes of the program other than 0. `--help` and `docs/nickel.md` name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Evaluation = 1,
    Usage = 2,
    Limit = 3,
    Outside = 4,
    Internal = 5,
}

impl Exit {
    pub(crate) const ALL: [Self; 5] =
        [Self::Evaluation, Self::Usage, Self::Limit, Self::Outside, Self::Internal];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// One thing that is wrong, as `--errors json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    /// Relative to the root.
    pub(crate) file: Option<String>,
    /// From 1.
    pub(crate) line: Option<u32>,
    /// From 1, in characters.
    pub(crate) column: Option<u32>,
    /// Where in the document, such as `spec.groups[0].scale.min`.
    pub(crate) field: Option<String>,
    pub(crate) message: String,
}

/// Why there is no document.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    text: String,
    faults: Vec<Fault>,
    /// Set if the evaluator has written it already.
    written: Option<Vec<u8>>,
}

impl Failure {
    /// One sentence that belongs to no position in a file.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message = message.into();
        let text = format!("error: {message}\n");
        let fault = Fault { file: None, line: None, column: None, field: None, message };
        Self { exit, text, faults: vec![fault], written: None }
    }

    /// Faults, and the same for people.
    pub(crate) fn at(exit: Exit, mut text: String, mut faults: Vec<Fault>) -> Self {
        shorten(&mut text, LONGEST_TEXT);
        for fault in &mut faults {
            shorten(&mut fault.message, LONGEST_MESSAGE);
            for name in [&mut fault.file, &mut fault.field].into_iter().flatten() {
                shorten(name, LONGEST_MESSAGE);
            }
        }
        Self { exit, text, faults, written: None }
    }

    /// What the evaluator wrote in the format that it was asked for.
    pub(crate) fn written(exit: Exit, written: Vec<u8>) -> Self {
        Self { exit, text: String::new(), faults: Vec::new(), written: Some(written) }
    }

    pub(crate) fn rendered(&self, format: ErrorFormat) -> Vec<u8> {
        #[derive(Serialize)]
        struct Document<'a> {
            errors: &'a [Fault],
        }
        if let Some(written) = &self.written {
            return written.clone();
        }
        match format {
            ErrorFormat::Text => self.text.clone().into_bytes(),
            ErrorFormat::Json => {
                let document = Document { errors: &self.faults };
                let mut bytes = serde_json::to_vec(&document).unwrap_or_default();
                bytes.push(b'\n');
                bytes
            }
        }
    }
}

fn shorten(text: &mut String, longest: usize) {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        text.push_str("…\n");
    }
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut text = "aöö".to_owned();
        shorten(&mut text, 2);
        assert_eq!(text, "a…\n");
        shorten(&mut text, 100);
        assert_eq!(text, "a…\n");
    }
}
