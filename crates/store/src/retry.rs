//! The one place where a transaction is run again.
//!
//! A database may refuse a transaction for reasons that have nothing to do with
//! what it says: a deadlock, a serialization failure, a busy file. It has then
//! been rolled back as a whole, and running it again is safe. Anything else is
//! the caller's to judge.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use slipway_durable::Backoff;

/// 5, 10, 20, 40 ms at most between five runs: a deadlock is over as soon as
/// one of the two has been sent away, so waiting longer helps nobody.
const ATTEMPTS: u32 = 5;
const BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(5), max: Duration::from_millis(100) };

/// An error that may carry the database's refusal.
pub(crate) trait MaybeTransient {
    fn database_error(&self) -> Option<&sqlx::Error>;
}

impl MaybeTransient for sqlx::Error {
    fn database_error(&self) -> Option<&sqlx::Error> {
        Some(self)
    }
}

/// Counts the runs of one transaction.
#[derive(Debug)]
pub(crate) struct Retries {
    runs: u32,
}

impl Retries {
    pub(crate) fn new() -> Self {
        Self { runs: 1 }
    }

    /// Whether to run it again after this error; waits first if so.
    pub(crate) async fn again(&mut self, error: &impl MaybeTransient) -> bool {
        if self.runs >= ATTEMPTS || !error.database_error().is_some_and(is_transient) {
            return false;
        }
        tracing::debug!(run = self.runs, "the database asked to run a transaction again");
        tokio::time::sleep(BACKOFF.delay(self.runs, jitter())).await;
        self.runs += 1;
        true
    }
}

/// Evaluates an expression that gives a future, again while [`Retries`] says so,
/// and waits for each run as long as an operation may take
/// ([`crate::patience`]). A macro and not a function: a closure could not lend
/// its rule to each run.
macro_rules! retried {
    ($run:expr) => {
        $crate::retry::retried_without_limit!($crate::patience::limited($run))
    };
}
pub(crate) use retried;

/// The same for what may take minutes: a migration.
macro_rules! retried_without_limit {
    ($run:expr) => {{
        let mut retries = $crate::retry::Retries::new();
        loop {
            match $run.await {
                Err(error) if retries.again(&error).await => {}
                outcome => break outcome,
            }
        }
    }};
}
pub(crate) use retried_without_limit;

/// Whether the database rolled back and asks to try again: PostgreSQL's
/// serialization failure and deadlock, SQLite's BUSY and LOCKED in all their
/// extended forms (the low byte is the primary code).
pub(crate) fn is_transient(error: &sqlx::Error) -> bool {
    let Some(code) = error.as_database_error().and_then(|error| error.code()) else {
        return false;
    };
    match code.as_ref() {
        "40001" | "40P01" => true,
        // A five digit code is PostgreSQL's, whose classes never are SQLite's.
        code if code.len() < 5 => {
            code.parse::<i32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6))
        }
        _ => false,
    }
}

/// A number in `0..1` that differs between processes and calls. Nothing depends
/// on it but who waits longer, so the standard library's hash seed will do.
fn jitter() -> f64 {
    let bits = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[derive(Debug)]
    struct Refused(&'static str);

    impl std::fmt::Display for Refused {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl std::error::Error for Refused {}

    impl sqlx::error::DatabaseError for Refused {
        fn message(&self) -> &str {
            self.0
        }
        fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
            Some(self.0.into())
        }
        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }
        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }
        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }
        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }
    }

    fn refusal(code: &'static str) -> sqlx::Error {
        sqlx::Error::Database(Box::new(Refused(code)))
    }

    #[test]
    fn only_what_was_rolled_back_by_chance_is_transient() {
        for code in ["40001", "40P01", "5", "6", "517", "261"] {
            assert!(is_transient(&refusal(code)), "{code}");
        }
        for code in ["23505", "23503", "2067", "787", "57014", "1"] {
            assert!(!is_transient(&refusal(code)), "{code}");
        }
        assert!(!is_transient(&sqlx::Error::PoolTimedOut));
    }

    async fn run_failing(runs: &Cell<u32>, until: u32) -> Result<u32, sqlx::Error> {
        runs.set(runs.get() + 1);
        if runs.get() < until { Err(refusal("40P01")) } else { Ok(runs.get()) }
    }

    #[tokio::test(start_paused = true)]
    async fn it_gives_up_after_a_bounded_number_of_runs() {
        let runs = Cell::new(0);
        let outcome = retried!(run_failing(&runs, u32::MAX));
        assert!(outcome.is_err());
        assert_eq!(runs.get(), ATTEMPTS);
    }

    #[tokio::test(start_paused = true)]
    async fn it_answers_with_the_first_success() {
        let runs = Cell::new(0);
        assert_eq!(retried!(run_failing(&runs, 3)).ok(), Some(3));
    }
}
