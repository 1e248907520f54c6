//! What is wrong with one row.

/// A column that cannot be read, or holds what it must not.
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
