//! How an operation of the store can fail, and the port's error for it.

use slipway_app::ports::store::Error;
use slipway_core::Refusal;
use slipway_durable::database::{ErrorClass, OperationError, class};
use uuid::Uuid;

use crate::fault::Fault;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The database failed.
    Database(sqlx::Error),
    /// A rule, or the state of a row, refused it.
    Refused(Refusal),
    /// A dry run would have written something.
    DryRun,
    NotFound {
        kind: &'static str,
    },
    /// The rows of this aggregate break an invariant.
    Corrupt {
        id: Uuid,
        fault: Fault,
    },
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl OperationError for Failure {
    fn database_error(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Database(error) => Some(error),
            Self::Refused(_) | Self::DryRun | Self::NotFound { .. } | Self::Corrupt { .. } => None,
        }
    }
}

impl Failure {
    /// Whether a transaction over many rows may have failed because of one of
    /// them, so that the others are worth trying without it. If the database is
    /// gone, full or read-only, each of them would only fail again.
    pub(crate) fn may_be_of_one_row(&self) -> bool {
        self.database_error().is_none_or(|error| !class(error).concerns_the_database())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Database(error) => of_database(&error),
            Failure::Refused(refusal) => Self::Refused(refusal),
            Failure::DryRun => Self::DryRun,
            Failure::NotFound { kind } => Self::NotFound { kind },
            Failure::Corrupt { id, fault } => Self::Corrupt { id, reason: fault.to_string() },
        }
    }
}

fn of_database(error: &sqlx::Error) -> Error {
    of_class(class(error), error.to_string())
}

pub(crate) fn of_class(class: ErrorClass, text: String) -> Error {
    match class {
        ErrorClass::Conflict | ErrorClass::Timeout | ErrorClass::Unavailable => {
            Error::Unavailable(text)
        }
        ErrorClass::ReadOnly => Error::ReadOnly(text),
        ErrorClass::Full => Error::Full(text),
        ErrorClass::Constraint | ErrorClass::Damaged | ErrorClass::Fault => Error::Internal(text),
    }
}

#[cfg(test)]
mod tests {
    use slipway_durable::database::{POSTGRES, SQLITE};

    use super::*;

    /// The table of `docs/operations.md`, as the two inventories say it.
    #[test]
    fn the_page_about_operations_has_every_code_of_the_databases() {
        let classes = [
            ErrorClass::Conflict,
            ErrorClass::Timeout,
            ErrorClass::Unavailable,
            ErrorClass::ReadOnly,
            ErrorClass::Full,
            ErrorClass::Constraint,
            ErrorClass::Damaged,
            ErrorClass::Fault,
        ];
        let quoted = |codes: Vec<&str>| {
            codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(" ")
        };
        let mut table = String::new();
        for class in classes {
            let postgres = POSTGRES.iter().filter(|(.., of)| *of == class).map(|(code, ..)| *code);
            let sqlite = SQLITE.iter().filter(|(.., of)| *of == class).map(|(_, name, _)| *name);
            let answer = slipway_app::Error::from(of_class(class, String::new())).kind().code();
            table += &format!(
                "| {} | {} | {} | `{answer}` |\n",
                format!("{class:?}").to_lowercase(),
                quoted(postgres.collect()),
                quoted(sqlite.collect()),
            );
        }
        let page = include_str!("../../../docs/operations.md");
        assert!(page.contains(&table), "docs/operations.md should have:\n{table}");
    }
}
