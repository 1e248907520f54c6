//! Classification of the driver's errors, by the codes of PostgreSQL and SQLite.
//! The two inventories name every class of codes that the databases have, with
//! the answer that it gets; `docs/operations.md` shows them.

use ErrorClass::{Conflict, Constraint, Damaged, Fault, Full, ReadOnly, Timeout, Unavailable};

/// An error of an operation, which may carry a database error.
pub trait OperationError: From<sqlx::Error> {
    fn database_error(&self) -> Option<&sqlx::Error>;
}

impl OperationError for sqlx::Error {
    fn database_error(&self) -> Option<&sqlx::Error> {
        Some(self)
    }
}

/// What an error of the database means to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The database rolled the transaction back by chance. The gateway runs it
    /// again a few times.
    Conflict,
    /// A lock or a statement took longer than it may. That can be the fault of
    /// one row.
    Timeout,
    /// There is no connection, or the server cannot work now.
    Unavailable,
    /// No write succeeds until somebody makes the database writable.
    ReadOnly,
    /// No write that needs space succeeds until somebody adds some.
    Full,
    /// A constraint of the schema refused the write. The rules of core refuse
    /// first, so it is a fault of ours all the same.
    Constraint,
    /// The database found its own data damaged.
    Damaged,
    /// The statement is wrong, or something that we do not expect happened.
    Fault,
}

impl ErrorClass {
    /// Whether the error is about the database and not about one row of a
    /// transaction.
    pub const fn concerns_the_database(self) -> bool {
        matches!(self, Unavailable | ReadOnly | Full | Damaged)
    }

    /// Whether the same call may work later, if nothing but the state of the
    /// database changes.
    pub const fn is_temporary(self) -> bool {
        matches!(self, Conflict | Timeout | Unavailable)
    }
}

/// The class of an error. Without a code the database itself answered nothing.
pub fn class(error: &sqlx::Error) -> ErrorClass {
    match error {
        sqlx::Error::Database(refusal) => refusal.code().map_or(Fault, |code| of_code(&code)),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => Unavailable,
        _ => Fault,
    }
}

/// A code of five characters is PostgreSQL's. SQLite's are shorter, and their low
/// byte is the primary code.
fn of_code(code: &str) -> ErrorClass {
    if code.len() >= 5 {
        return of_sqlstate(code);
    }
    code.parse::<i32>().map_or(Fault, |code| of_sqlite(code & 0xff))
}

/// The row with the longest prefix decides.
fn of_sqlstate(code: &str) -> ErrorClass {
    let rows = POSTGRES.iter().filter(|(prefix, ..)| code.starts_with(prefix));
    rows.max_by_key(|(prefix, ..)| prefix.len()).map_or(Fault, |(.., class)| *class)
}

fn of_sqlite(primary: i32) -> ErrorClass {
    SQLITE.iter().find(|(code, ..)| *code == primary).map_or(Fault, |(.., class)| *class)
}

/// Every class of SQLSTATE codes, and after it the codes that differ from their
/// class.
///
/// A refused login (28, 3D) is `Unavailable`: at run time the server refuses what
/// it accepted before, so a person changes that and not the request. At the start
/// it is final, see the store.
pub const POSTGRES: &[(&str, &str, ErrorClass)] = &[
    ("00", "successful completion", Fault),
    ("01", "warning", Fault),
    ("02", "no data", Fault),
    ("03", "SQL statement not yet complete", Fault),
    ("08", "connection exception", Unavailable),
    ("09", "triggered action exception", Fault),
    ("0A", "feature not supported", Fault),
    ("0B", "invalid transaction initiation", Fault),
    ("0F", "locator exception", Fault),
    ("0L", "invalid grantor", Fault),
    ("0P", "invalid role specification", Fault),
    ("0Z", "diagnostics exception", Fault),
    ("10", "XQuery error", Fault),
    ("20", "case not found", Fault),
    ("21", "cardinality violation", Fault),
    ("22", "data exception", Fault),
    ("23", "integrity constraint violation", Constraint),
    ("24", "invalid cursor state", Fault),
    ("25", "invalid transaction state", Fault),
    ("25006", "read-only transaction", ReadOnly),
    ("25P03", "idle transaction ended", Unavailable),
    ("25P04", "long transaction ended", Unavailable),
    ("26", "invalid SQL statement name", Fault),
    ("27", "triggered data change violation", Fault),
    ("28", "invalid authorization", Unavailable),
    ("2B", "dependent privileges still exist", Fault),
    ("2D", "invalid transaction termination", Fault),
    ("2F", "SQL routine exception", Fault),
    ("34", "invalid cursor name", Fault),
    ("38", "external routine exception", Fault),
    ("39", "external routine invocation exception", Fault),
    ("3B", "savepoint exception", Fault),
    ("3D", "no such database", Unavailable),
    ("3F", "invalid schema name", Fault),
    ("40", "transaction rollback", Conflict),
    ("40002", "integrity constraint violation at the commit", Constraint),
    ("40003", "unknown whether the statement completed", Unavailable),
    ("42", "syntax error or access rule violation", Fault),
    ("44", "check option violation", Constraint),
    ("53", "insufficient resources", Unavailable),
    ("53100", "disk full", Full),
    ("54", "program limit exceeded", Fault),
    ("55", "object not in prerequisite state", Fault),
    ("55P03", "lock not available in time", Timeout),
    ("57", "operator intervention", Unavailable),
    ("57014", "statement canceled", Timeout),
    ("58", "system error", Unavailable),
    ("72", "snapshot too old", Conflict),
    ("F0", "configuration file error", Unavailable),
    ("HV", "foreign data wrapper error", Fault),
    ("P0", "PL/pgSQL error", Fault),
    ("XX", "internal error", Fault),
    ("XX001", "data corrupted", Damaged),
    ("XX002", "index corrupted", Damaged),
];

/// Every primary result code of SQLite.
pub const SQLITE: &[(i32, &str, ErrorClass)] = &[
    (0, "OK", Fault),
    (1, "ERROR", Fault),
    (2, "INTERNAL", Fault),
    (3, "PERM", Fault),
    (4, "ABORT", Fault),
    (5, "BUSY", Conflict),
    (6, "LOCKED", Conflict),
    (7, "NOMEM", Unavailable),
    (8, "READONLY", ReadOnly),
    (9, "INTERRUPT", Timeout),
    (10, "IOERR", Unavailable),
    (11, "CORRUPT", Damaged),
    (12, "NOTFOUND", Fault),
    (13, "FULL", Full),
    (14, "CANTOPEN", Unavailable),
    (15, "PROTOCOL", Conflict),
    (16, "EMPTY", Fault),
    (17, "SCHEMA", Conflict),
    (18, "TOOBIG", Fault),
    (19, "CONSTRAINT", Constraint),
    (20, "MISMATCH", Fault),
    (21, "MISUSE", Fault),
    (22, "NOLFS", Fault),
    (23, "AUTH", Fault),
    (24, "FORMAT", Fault),
    (25, "RANGE", Fault),
    (26, "NOTADB", Damaged),
    (27, "NOTICE", Fault),
    (28, "WARNING", Fault),
    (100, "ROW", Fault),
    (101, "DONE", Fault),
];

#[cfg(test)]
mod tests;
