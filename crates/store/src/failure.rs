//! How an operation of the store can end before its time, and what the port
//! says of it.

use slipway_app::ports::store::Error;
use slipway_core::Refusal;
use uuid::Uuid;

use crate::fault::Fault;
use crate::patience;
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

/// A state of the whole database in which nothing can be written, and that
/// somebody has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    ReadOnly,
    Full,
}

/// PostgreSQL: read-only transaction (25006), disk full (53100). SQLite by its
/// primary code: READONLY 8, FULL 13.
pub(crate) fn condition(error: &sqlx::Error) -> Option<Condition> {
    let code = error.as_database_error()?.code()?;
    if code.len() == 5 {
        return match code.as_ref() {
            "25006" => Some(Condition::ReadOnly),
            "53100" => Some(Condition::Full),
            _ => None,
        };
    }
    match code.parse::<i32>().ok()? & 0xff {
        8 => Some(Condition::ReadOnly),
        13 => Some(Condition::Full),
        _ => None,
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
        Some(Condition::ReadOnly) => {
            // A server that became a standby stays one for its old connections,
            // and a session keeps the default that it began with.
            patience::distrust();
            Error::ReadOnly(text)
        }
        Some(Condition::Full) => Error::Full(text),
        None if may_pass(error) => Error::Unavailable(text),
        None => Error::Internal(text),
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
