//! How an operation of the store can fail, and the port's error for it.

use slipway_app::ports::store::Error;
use slipway_core::Refusal;
use slipway_durable::database::{
    Condition, OperationError, concerns_the_database, condition, is_temporary,
};
use uuid::Uuid;

use crate::fault::Fault;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The database failed.
    Database(sqlx::Error),
    /// A rule, or the state of a row, refused it.
    Refused(Refusal),
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
            Self::Refused(_) | Self::NotFound { .. } | Self::Corrupt { .. } => None,
        }
    }
}

impl Failure {
    /// Whether a transaction over many rows may have failed because of one of
    /// them, so that the others are worth trying without it. If the database is
    /// gone, full or read-only, each of them would only fail again.
    pub(crate) fn may_be_of_one_row(&self) -> bool {
        self.database_error().is_none_or(|error| !concerns_the_database(error))
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Database(error) => of_database(&error),
            Failure::Refused(refusal) => Self::Refused(refusal),
            Failure::NotFound { kind } => Self::NotFound { kind },
            Failure::Corrupt { id, fault } => Self::Corrupt { id, reason: fault.to_string() },
        }
    }
}

fn of_database(error: &sqlx::Error) -> Error {
    let text = error.to_string();
    match condition(error) {
        Some(Condition::ReadOnly) => Error::ReadOnly(text),
        Some(Condition::Full) => Error::Full(text),
        None if is_temporary(error) => Error::Unavailable(text),
        None => Error::Internal(text),
    }
}
