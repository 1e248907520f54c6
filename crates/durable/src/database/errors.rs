//! Classification of the driver's errors, by the codes of PostgreSQL and
//! SQLite. A five digit code is PostgreSQL's; SQLite's are shorter, and their
//! low byte is the primary code.

/// An error of an operation, which may carry a database error.
pub trait OperationError: From<sqlx::Error> {
    fn database_error(&self) -> Option<&sqlx::Error>;
}

impl OperationError for sqlx::Error {
    fn database_error(&self) -> Option<&sqlx::Error> {
        Some(self)
    }
}

/// A state of the whole database in which no write succeeds until somebody ends
/// that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    ReadOnly,
    Full,
}

/// PostgreSQL: read-only transaction (25006), disk full (53100). SQLite:
/// READONLY 8, FULL 13.
pub fn condition(error: &sqlx::Error) -> Option<Condition> {
    let code = error.as_database_error()?.code()?;
    match (code.as_ref(), sqlite_primary(&code)) {
        ("25006", _) | (_, Some(8)) => Some(Condition::ReadOnly),
        ("53100", _) | (_, Some(13)) => Some(Condition::Full),
        _ => None,
    }
}

/// Whether the database rolled back and a retry is safe: PostgreSQL's serialization
/// failure and deadlock, SQLite's BUSY and LOCKED in all their extended forms.
pub fn is_transient(error: &sqlx::Error) -> bool {
    let Some(code) = error.as_database_error().and_then(|error| error.code()) else {
        return false;
    };
    matches!(code.as_ref(), "40001" | "40P01") || matches!(sqlite_primary(&code), Some(5 | 6))
}

/// Whether there was no connection, or it broke; the database itself answered nothing.
pub fn has_no_connection(error: &sqlx::Error) -> bool {
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

/// Whether the error is about the database and not about one row of a
/// transaction. PostgreSQL: connection lost (08), resources short (53),
/// shutting down (57P), read-only (25006). SQLite: BUSY 5, LOCKED 6, NOMEM 7,
/// READONLY 8, IOERR 10, CORRUPT 11, FULL 13, CANTOPEN 14, NOTADB 26.
pub fn concerns_the_database(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return has_no_connection(error) };
    refusal.code().is_some_and(|code| {
        if code.len() == 5 {
            return ["08", "53"].contains(&&code[..2])
                || code.starts_with("57P")
                || code == "25006";
        }
        matches!(sqlite_primary(&code), Some(5..=8 | 10 | 11 | 13 | 14 | 26))
    })
}

/// Whether the same call may work later. PostgreSQL: connection lost (08),
/// resources short (53), canceled or shutting down (57), lock timeout (55P03),
/// and errors that outlasted the retries.
pub fn is_temporary(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return has_no_connection(error) };
    is_transient(error)
        || refusal.code().is_some_and(|code| {
            code.len() == 5 && (["08", "53", "57"].contains(&&code[..2]) || code == "55P03")
        })
}

fn sqlite_primary(code: &str) -> Option<i32> {
    if code.len() >= 5 { None } else { code.parse::<i32>().ok().map(|code| code & 0xff) }
}
