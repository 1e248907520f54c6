//! How the kinds of this API are shown. A kind implements these traits in its own
//! file, beside its arguments and commands; [`crate::session::Session`] lists,
//! shows, makes, changes and deletes every kind in the same way.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::output::{facts, rows};

/// Names beside values. A fact without a value is left out.
pub(crate) type Facts = Vec<(&'static str, Option<String>)>;

/// One row: each heading with its cell.
pub(crate) type Cells = Vec<(&'static str, String)>;

/// A document that is shown in lists, one line each.
pub(crate) trait Row: Serialize {
    /// The columns, the same for every row.
    fn cells(&self) -> Cells;
}

/// A document that is shown by itself, with all that is known of it.
pub(crate) trait Detail: Serialize {
    fn facts(&self) -> Facts;

    /// Text below the facts that must not be broken, such as a secret to copy.
    fn note(&self) -> Option<String> {
        None
    }
}

/// A kind that the API serves under a path of its own.
pub(crate) trait Kind: Row + Detail + DeserializeOwned {
    /// As questions name it.
    const NOUN: &'static str;
    /// The first segment of its paths.
    const PATH: &'static str;
}

pub(crate) fn table<R: Row>(items: &[R], width: Option<u16>) -> String {
    let headings = items.first().map(Row::cells).unwrap_or_default();
    let headings: Vec<_> = headings.into_iter().map(|(heading, _)| heading).collect();
    let row = |item: &R| item.cells().into_iter().map(|(_, cell)| cell).collect();
    rows(&headings, items.iter().map(row).collect(), width)
}

pub(crate) fn details<D: Detail>(document: &D, width: Option<u16>) -> String {
    let shown = facts(document.facts(), width);
    match document.note() {
        Some(note) => format!("{shown}\n\n{note}"),
        None => shown,
    }
}
