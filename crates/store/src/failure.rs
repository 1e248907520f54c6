//! How an operation of the store can end before its time, and what the port
//! says of it.

use slipway_app::ports::store::Error;
use slipway_core::Refusal;
use uuid::Uuid;

use crate::fault::Fault;
use crate::retry::{MaybeTransient, is_transient};

#[derive(Debug)]
pub(crate) enum Failure {
    /// The database could not do it.
    Database(sqlx::Error),
    /// A rule, or the state of a row, said no.
    Refused(Refusal),
    NotFound {
        kind: &'static str,
    },
    /// The rows of this thing break an invariant.
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

impl MaybeTransient for Failure {
    fn database_error(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Database(error) => Some(error),
            Self::Refused(_) | Self::NotFound { .. } | Self::Corrupt { .. } => None,
        }
    }
}

impl Failure {
    /// Whether a transaction over many rows may have failed for one of them,
    /// so that the others are worth trying without it. Where the database is
    /// gone, full or read-only, each of them would only fail again.
    pub(crate) fn may_be_of_one_row(&self) -> bool {
        let Self::Database(error) = self else { return true };
        match error {
            sqlx::Error::Database(refusal) => {
                refusal.code().is_none_or(|code| !concerns_the_database(&code))
            }
            error => !has_no_connection(error),
        }
    }
}

/// PostgreSQL: connection lost (08), resources short (53), shutting down (57P),
/// read-only (25006). SQLite by its primary code: BUSY 5, LOCKED 6, NOMEM 7,
/// READONLY 8, IOERR 10, CORRUPT 11, FULL 13, CANTOPEN 14, NOTADB 26.
fn concerns_the_database(code: &str) -> bool {
    if code.len() == 5 {
        return ["08", "53"].contains(&&code[..2]) || code.starts_with("57P") || code == "25006";
    }
    code.parse::<i32>().is_ok_and(|code| matches!(code & 0xff, 5..=8 | 10 | 11 | 13 | 14 | 26))
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Database(error) if may_pass(&error) => Self::Unavailable(error.to_string()),
            Failure::Database(error) => Self::Internal(error.to_string()),
            Failure::Refused(refusal) => Self::Refused(refusal),
            Failure::NotFound { kind } => Self::NotFound { kind },
            Failure::Corrupt { id, fault } => Self::Corrupt { id, reason: fault.to_string() },
        }
    }
}

/// Whether no connection was had, or it broke: nothing the database itself said.
fn has_no_connection(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
    )
}

/// Whether the same call may work later. PostgreSQL: connection lost (08),
/// resources short (53), canceled or shutting down (57), lock not had in time
/// (55P03), and what the retries already tried.
fn may_pass(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(refusal) => {
            is_transient(error)
                || refusal.code().is_some_and(|code| {
                    code.len() == 5 && (["08", "53", "57"].contains(&&code[..2]) || code == "55P03")
                })
        }
        error => has_no_connection(error),
    }
}
