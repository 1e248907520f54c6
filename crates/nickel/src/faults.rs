//! Turns errors of Nickel into faults with a position and a field.

use nickel_lang_core::error::report::{ColorOpt, report_as_str};
use nickel_lang_core::error::{Diagnostic, Error, EvalErrorKind, IntoDiagnostics as _, LabelStyle};
use nickel_lang_core::files::FileId;

use crate::failure::{Exit, Failure, Fault};
use crate::sources::Shown;

/// What is wrong, in the order in which it was found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    entries: Vec<Entry>,
}

/// One error of Nickel.
#[derive(Debug)]
struct Entry {
    field: Option<String>,
    /// For people.
    text: String,
    /// One, unless the syntax is broken at several positions.
    faults: Vec<Fault>,
}

impl Report {
    /// An error that belongs to no field.
    pub(crate) fn of(shown: &Shown, error: Error) -> Self {
        let mut report = Self::default();
        report.add(shown, error, None);
        report
    }

    /// Adds an error unless it is known already: one wrong value can be met on the way to
    /// several fields. The field that the error itself names is the best of them.
    pub(crate) fn add(&mut self, shown: &Shown, error: Error, field: Option<&str>) {
        // Nickel adds a value that it shows in an excerpt as a further file.
        let mut files = shown.files.clone();
        let is_error = Diagnostic::<FileId>::error().severity;
        let diagnostics = error.clone().into_diagnostics(&mut files);
        let faults: Vec<_> = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == is_error)
            .map(|diagnostic| fault(shown, diagnostic))
            .collect();
        let is_named = field.is_some_and(|field| is_about(&error, field));
        let field = field.map(str::to_owned);
        match self.entries.iter_mut().find(|entry| entry.faults == faults) {
            Some(known) if is_named => known.field = field,
            Some(_) => {}
            None => {
                let text = report_as_str(&mut shown.files.clone(), error, ColorOpt::Never);
                self.entries.push(Entry { field, text, faults });
            }
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn into_failure(self) -> Failure {
        let mut text = String::new();
        let mut faults = Vec::new();
        for entry in self.entries {
            if let Some(field) = &entry.field {
                text.push_str(&format!("in the field {field}:\n"));
            }
            text.push_str(&entry.text);
            let field = entry.field;
            faults.extend(
                entry.faults.into_iter().map(|fault| Fault { field: field.clone(), ..fault }),
            );
        }
        Failure::at(Exit::Evaluation, text, faults)
    }
}

/// Whether the contract that was broken is that of the field.
fn is_about(error: &Error, field: &str) -> bool {
    let Error::EvalError(data) = error else { return false };
    let EvalErrorKind::BlameError { label, .. } = &data.error else { return false };
    let last = field.rsplit('.').next();
    label.field_name.is_some_and(|name| Some(name.label()) == last)
}

/// What people can change is the best position to show, and there what the error is about.
fn fault(shown: &Shown, diagnostic: &Diagnostic<FileId>) -> Fault {
    let label = diagnostic
        .labels
        .iter()
        .filter(|label| shown.own.contains(&label.file_id))
        .min_by_key(|label| label.style != LabelStyle::Primary);
    let located = locate(shown, label.map(|label| (label.file_id, label.range.start)));
    Fault { message: message(diagnostic), ..located }
}

/// A fault without message at a position: a file and a number of bytes.
pub(crate) fn locate(shown: &Shown, start: Option<(FileId, usize)>) -> Fault {
    let nowhere =
        Fault { file: None, line: None, column: None, field: None, message: String::new() };
    let Some((id, start)) = start else { return nowhere };
    let source = shown.files.source(id);
    let before = source.get(..start).unwrap_or(source);
    let line = before.rsplit('\n').next().unwrap_or(before);
    Fault {
        file: Some(shown.files.name(id).to_string_lossy().into_owned()),
        line: u32::try_from(before.matches('\n').count() + 1).ok(),
        column: u32::try_from(line.chars().count() + 1).ok(),
        ..nowhere
    }
}

/// Nickel indents further lines of a message for its own layout.
fn message(diagnostic: &Diagnostic<FileId>) -> String {
    let mut message = diagnostic.message.lines().map(str::trim).collect::<Vec<_>>().join(": ");
    for note in &diagnostic.notes {
        message.push('\n');
        message.push_str(note);
    }
    message
}
