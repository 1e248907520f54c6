//! The one place that runs a transaction again.
//!
//! A database may refuse a transaction for reasons that have nothing to do with
//! its content: a deadlock, a serialization failure, a busy file. The database
//! has then rolled it back as a whole, and running it again is safe. The caller
//! judges any other error.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::errors::{ErrorClass, OperationError, class};
use crate::Backoff;

/// 5, 10, 20, 40 ms at most between five runs: a deadlock ends as soon as one
/// of the two transactions is refused, so a longer wait does not help.
pub(super) const RUNS: u32 = 5;
const BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(5), max: Duration::from_millis(100) };

/// Counts the runs of one transaction.
#[derive(Debug)]
pub(super) struct Retries {
    runs: u32,
}

impl Retries {
    pub(super) fn new() -> Self {
        Self { runs: 1 }
    }

    /// Whether to run it again after this error; if so, waits first.
    pub(super) async fn again(&mut self, error: &impl OperationError) -> bool {
        let conflict = error.database_error().map(class) == Some(ErrorClass::Conflict);
        if self.runs >= RUNS || !conflict {
            return false;
        }
        tracing::debug!(run = self.runs, "the database asked to run a transaction again");
        tokio::time::sleep(BACKOFF.delay(self.runs, jitter())).await;
        self.runs += 1;
        true
    }
}

/// Runs `run`, and again while the error is a conflict. For calls before there
/// is a gateway: connecting to a file that another process is switching to WAL.
pub async fn retried<A: Copy, T, E: OperationError>(
    arguments: A,
    run: impl AsyncFn(A) -> Result<T, E>,
) -> Result<T, E> {
    let mut retries = Retries::new();
    loop {
        match run(arguments).await {
            Err(error) if retries.again(&error).await => {}
            outcome => return outcome,
        }
    }
}

/// The same on one connection and without a limit, for a migration, which may
/// take minutes.
pub async fn retried_on<C, T, E: OperationError>(
    connection: &mut C,
    run: impl AsyncFn(&mut C) -> Result<T, E>,
) -> Result<T, E> {
    let mut retries = Retries::new();
    loop {
        match run(connection).await {
            Err(error) if retries.again(&error).await => {}
            outcome => return outcome,
        }
    }
}

/// A number in `0..1` that differs between processes and calls. It only decides
/// who waits longer, so the standard library's hash seed will do.
fn jitter() -> f64 {
    let bits = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}
