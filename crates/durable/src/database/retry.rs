//! The one place where a transaction is run again.
//!
//! A database may refuse a transaction for reasons that have nothing to do with
//! what it says: a deadlock, a serialization failure, a busy file. It has then
//! been rolled back as a whole, and running it again is safe. Anything else is
//! the caller's to judge.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::errors::{OperationError, is_transient};
use crate::Backoff;

/// 5, 10, 20, 40 ms at most between five runs: a deadlock is over as soon as
/// one of the two has been sent away, so waiting longer helps nobody.
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

    /// Whether to run it again after this error; waits first if so.
    pub(super) async fn again(&mut self, error: &impl OperationError) -> bool {
        if self.runs >= RUNS || !error.database_error().is_some_and(is_transient) {
            return false;
        }
        tracing::debug!(run = self.runs, "the database asked to run a transaction again");
        tokio::time::sleep(BACKOFF.delay(self.runs, jitter())).await;
        self.runs += 1;
        true
    }
}

/// Runs `run`, again while the database asks for it. Before there is a gateway:
/// connecting to a file that another process is switching to its log.
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

/// The same on one connection, and without any limit: for what may take
/// minutes, a migration.
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

/// A number in `0..1` that differs between processes and calls. Nothing depends
/// on it but who waits longer, so the standard library's hash seed will do.
fn jitter() -> f64 {
    let bits = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}
