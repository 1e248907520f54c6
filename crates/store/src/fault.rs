//! The fault of one row.

/// A column that cannot be read, or has a value that it must not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{column}` {problem}")]
pub(crate) struct Fault {
    pub(crate) column: String,
    pub(crate) problem: String,
}

impl Fault {
    pub(crate) fn new(column: &str, problem: impl Into<String>) -> Self {
        Self { column: column.to_owned(), problem: problem.into() }
    }
}
