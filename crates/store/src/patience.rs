//! How long an operation may wait for the database, and whether connections are
//! still to be believed.
//!
//! The server's own limits end a slow statement. They cannot end the wait for a
//! server that is not there any more: a connection through which nothing comes
//! back (a cable pulled, a firewall that forgot it) looks like one that is
//! busy. So every operation has a limit on this side too, beyond the server's.
//!
//! What a connection shows of its server is true of its neighbours: the host is
//! gone, or it became a read-only standby while another took its place. The
//! connections made before are then not used again ([`distrust`]). They are not
//! asked either: asking is what would hang.
//!
//! This is the state of the process and not of one store, because where errors
//! are judged no store is at hand. A second store in the same process loses
//! nothing but a few connections to it.

use std::io::{Error as IoError, ErrorKind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The server's limit for a statement, if nobody says another.
pub(crate) const STATEMENT_LIMIT: Duration = Duration::from_secs(30);

/// What an operation gets beyond the limit of a statement: time for the server
/// to end it and say so, and three seconds to get a connection.
const BEYOND_A_STATEMENT: Duration = Duration::from_secs(5);

static LIMIT_MILLIS: AtomicU64 = AtomicU64::new(35_000);
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Operations end a little after statements would.
pub(crate) fn set_statement_limit(limit: Duration) {
    let limit = (limit + BEYOND_A_STATEMENT).as_millis();
    LIMIT_MILLIS.store(u64::try_from(limit).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Connections made in an earlier generation are not to be used.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// Ends the generation.
pub(crate) fn distrust() {
    GENERATION.fetch_add(1, Ordering::AcqRel);
}

/// Waits for an operation as long as any may take.
pub(crate) async fn limited<T, E: From<sqlx::Error>>(
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let limit = Duration::from_millis(LIMIT_MILLIS.load(Ordering::Relaxed));
    limited_to(limit, operation).await
}

/// Waits no longer than `limit`.
pub(crate) async fn limited_to<T, E: From<sqlx::Error>>(
    limit: Duration,
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    // Dropped at the end of this function and not before, so that its
    // connection is distrusted by the time at which it goes back to its pool.
    let mut operation = pin!(operation);
    tokio::select! {
        outcome = &mut operation => outcome,
        () = tokio::time::sleep(limit) => {
            distrust();
            tracing::warn!(?limit, "the database is silent; its connections are given up");
            let text = format!("the database did not answer within {limit:?}");
            Err(sqlx::Error::Io(IoError::new(ErrorKind::TimedOut, text)).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_ends_and_ends_the_generation() {
        let before = generation();
        let silent = std::future::pending::<Result<(), sqlx::Error>>();
        let error = limited_to(Duration::from_secs(7), silent).await.unwrap_err();
        assert!(error.to_string().contains("did not answer within 7s"), "{error}");
        assert!(generation() > before);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_passed_on() {
        let answer = limited(async { Ok::<_, sqlx::Error>(7) }).await;
        assert_eq!(answer.unwrap(), 7);
    }
}
