//! How an operation on a database can fail.

use slipway_durable::database::{OperationError, class};

use crate::Error;
use crate::text::storable_error;

#[derive(Debug)]
pub(crate) enum Failure {
    Database(sqlx::Error),
    /// A rule, or the state of a row, refused it.
    Refused(Error),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl OperationError for Failure {
    fn database_error(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Database(error) => Some(error),
            Self::Refused(_) => None,
        }
    }
}

impl Failure {
    /// Whether a transaction over many rows may have failed because of one of them, so that
    /// the others are worth trying without it.
    pub(crate) fn may_be_of_one_row(&self) -> bool {
        self.database_error().is_none_or(|error| !class(error).concerns_the_database())
    }
}

/// A database that is full or read-only is one that a person has to help: until then a job
/// waits, and nothing is cleaned up.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error,
            Failure::Database(error) => {
                let (class, text) = (class(&error), storable_error(&error.to_string()));
                if class.is_temporary() || class.concerns_the_database() {
                    Self::Unavailable(text)
                } else {
                    Self::Database(text)
                }
            }
        }
    }
}
