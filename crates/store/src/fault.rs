//! The fault of one row.

use slipway_core::blocker::DeregistrationSeam;

/// A column that cannot be read, or has a value that it must not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{column}` {problem}")]
pub(crate) struct Fault {
    pub(crate) column: String,
    pub(crate) problem: String,
    /// Set if the row is needed to deregister the node of an attempt.
    pub(crate) seam: Option<DeregistrationSeam>,
}

impl Fault {
    pub(crate) fn new(column: &str, problem: impl Into<String>) -> Self {
        Self { column: column.to_owned(), problem: problem.into(), seam: None }
    }

    pub(crate) fn of(self, seam: DeregistrationSeam) -> Self {
        Self { seam: Some(seam), ..self }
    }
}
