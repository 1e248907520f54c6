//! How the kinds of this API are shown. A kind implements these traits in its
//! own file, beside its arguments and commands; [`crate::session::Session`]
//! lists, shows, creates, changes and deletes all kinds in the same way.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::output::{Layout, facts, list};

/// Names with values. A fact without a value is left out.
pub(crate) type Facts = Vec<(&'static str, Option<String>)>;

/// One row: each heading with its cell.
pub(crate) type Cells = Vec<(&'static str, String)>;

/// A document that lists show, one per line.
pub(crate) trait Row: Serialize {
    /// The columns, the same for every row, the most important first: the last ones are
    /// left out where there is no room. A time is given as the API writes it, and a column
    /// `ID` has whole ids; see [`list`].
    fn cells(&self) -> Cells;

    /// More columns, for `-o wide`.
    fn wide(&self) -> Cells {
        Vec::new()
    }
}

/// A document that is shown by itself, with all its facts.
pub(crate) trait Detail: Serialize {
    /// Its kind, for `-o name`; empty for what has no name.
    const NOUN: &'static str = "";

    fn facts(&self) -> Facts;

    /// The deletion that it carries while it is not deleted.
    fn open_deletion(&self) -> Option<&str> {
        None
    }

    /// Text below the facts that must not be wrapped, such as a secret to copy.
    fn note(&self) -> Option<String> {
        None
    }
}

/// A kind that has its own path in the API.
pub(crate) trait Kind: Row + Detail + DeserializeOwned {
    /// The first segment of its paths.
    const PATH: &'static str;
}

pub(crate) fn table<R: Row>(items: &[R], layout: impl Into<Layout>) -> String {
    let layout = layout.into();
    let cells = |item: &R| {
        let mut cells = item.cells();
        if layout.wide {
            cells.extend(item.wide());
        }
        cells
    };
    let headings = items.first().map(cells).unwrap_or_default();
    let headings: Vec<_> = headings.into_iter().map(|(heading, _)| heading).collect();
    let row = |item: &R| cells(item).into_iter().map(|(_, cell)| cell).collect();
    list(&headings, items.iter().map(row).collect(), layout)
}

pub(crate) fn details<D: Detail>(document: &D, layout: impl Into<Layout>) -> String {
    let shown = facts(document.facts(), layout.into().width);
    match document.note() {
        Some(note) => format!("{shown}\n\n{note}"),
        None => shown,
    }
}
