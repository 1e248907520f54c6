//! The fault of one row.

use std::fmt::{self, Display};

use slipway_core::blocker::DeregistrationSeam;

/// A column that cannot be read, or has a value that it must not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Fault {
    /// The rows that lead to it, as a person finds them; the last one has the column.
    pub(crate) rows: Vec<String>,
    pub(crate) column: String,
    pub(crate) problem: String,
    /// Set if the row is needed to deregister the node of an attempt.
    pub(crate) seam: Option<DeregistrationSeam>,
}

impl Fault {
    pub(crate) fn new(column: &str, problem: impl Into<String>) -> Self {
        Self { column: column.to_owned(), problem: problem.into(), seam: None, rows: Vec::new() }
    }

    /// The fault of a row that this one leads to, or of this one.
    pub(crate) fn in_row(mut self, row: impl Display) -> Self {
        self.rows.insert(0, row.to_string());
        self
    }

    pub(crate) fn of(self, seam: DeregistrationSeam) -> Self {
        Self { seam: Some(seam), ..self }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.rows.is_empty() {
            write!(f, "{}: ", self.rows.join(", "))?;
        }
        write!(f, "`{}` {}", self.column, self.problem)
    }
}
