//! Logs that the database cannot be used: one line when that begins and one when
//! it ends, for all operations of the process together. While it lasts, each
//! caller gets its error and nobody else logs it, or a database that is away for
//! an hour would fill the log with the same line.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::errors::ErrorClass;

/// A state ends with the first success after this time without another failure.
/// Without it, a database that fails every second operation would log two lines
/// for each.
const CALM: Duration = Duration::from_secs(3);

/// What an operation that succeeded proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    Read,
    /// A statement that may write was accepted. It may have written nothing.
    Accepted,
    /// A transaction that wrote was committed.
    Committed,
}

/// The states that began and did not end.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// Whether there are any, so that an operation that succeeds takes no lock.
    any: AtomicBool,
    begun: Mutex<Vec<Outage>>,
}

#[derive(Debug)]
struct Outage {
    class: ErrorClass,
    /// It kept a write from its end. A read that succeeds is then no proof: SQLite reads
    /// while another process locks the file.
    met_by_write: bool,
    since: Instant,
    last: Instant,
}

impl Outages {
    /// An operation failed with an error of this class. Only states of the
    /// database as a whole are logged here; callers log the others. A conflict that
    /// outlasted its retries is a wait that was too long.
    pub(super) fn failed(&self, class: ErrorClass, by_write: bool, error: &sqlx::Error) {
        let class = if class == ErrorClass::Conflict { ErrorClass::Timeout } else { class };
        let Some((begins, _)) = texts(class) else { return };
        let now = Instant::now();
        let mut begun = self.begun();
        if let Some(outage) = begun.iter_mut().find(|outage| outage.class == class) {
            outage.last = now;
            outage.met_by_write |= by_write;
            tracing::debug!(%error, "{begins}");
            return;
        }
        begun.push(Outage { class, met_by_write: by_write, since: now, last: now });
        self.any.store(true, Ordering::Release);
        tracing::warn!(%error, "{begins}; this is logged again when it is over");
    }

    pub(super) fn succeeded(&self, proof: Proof) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut begun = self.begun();
        begun.retain(|outage| {
            let lasts = outage.last.elapsed() < CALM || !outage.ends(proof);
            if !lasts && let Some((_, ended)) = texts(outage.class) {
                tracing::info!(after = ?outage.since.elapsed(), "{ended}");
            }
            lasts
        });
        self.any.store(!begun.is_empty(), Ordering::Release);
    }

    /// The state in which it answers and refuses writes.
    pub(super) fn refuses_writes(&self) -> Option<ErrorClass> {
        let refuses = |class: &ErrorClass| matches!(class, ErrorClass::ReadOnly | ErrorClass::Full);
        self.begun().iter().map(|outage| outage.class).find(refuses)
    }

    fn begun(&self) -> MutexGuard<'_, Vec<Outage>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outage {
    /// A read succeeds on a read-only or full database too, and a statement that
    /// writes nothing on a full one.
    fn ends(&self, proof: Proof) -> bool {
        match self.class {
            ErrorClass::ReadOnly => proof != Proof::Read,
            ErrorClass::Full => proof == Proof::Committed,
            _ => !self.met_by_write || proof != Proof::Read,
        }
    }
}

/// The lines of a state: it begins, it is over.
const fn texts(class: ErrorClass) -> Option<(&'static str, &'static str)> {
    match class {
        ErrorClass::Unavailable => {
            Some(("the database does not answer", "the database answers again"))
        }
        ErrorClass::Timeout => Some((
            "operations wait too long for others in the database",
            "operations no longer wait too long in the database",
        )),
        ErrorClass::ReadOnly => {
            Some(("the database is read-only", "the database can be written again"))
        }
        ErrorClass::Full => Some(("the database is full", "the database has room again")),
        ErrorClass::Conflict | ErrorClass::Constraint | ErrorClass::Damaged | ErrorClass::Fault => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(outages: &Outages) -> Vec<ErrorClass> {
        outages.begun().iter().map(|outage| outage.class).collect()
    }

    fn fail(outages: &Outages, class: ErrorClass) {
        outages.failed(class, false, &sqlx::Error::PoolTimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_begins_once_and_ends_when_it_is_calm() {
        let outages = Outages::default();
        for _ in 0..3 {
            fail(&outages, ErrorClass::Unavailable);
            outages.succeeded(Proof::Committed);
            assert_eq!(states(&outages), [ErrorClass::Unavailable], "it failed a moment ago");
            tokio::time::advance(CALM / 2).await;
        }
        tokio::time::advance(CALM).await;
        outages.succeeded(Proof::Read);
        assert!(states(&outages).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_proves_nothing_about_writes() {
        let outages = Outages::default();
        fail(&outages, ErrorClass::ReadOnly);
        fail(&outages, ErrorClass::Full);
        tokio::time::advance(CALM).await;
        outages.succeeded(Proof::Read);
        assert_eq!(states(&outages), [ErrorClass::ReadOnly, ErrorClass::Full]);
        outages.succeeded(Proof::Accepted);
        assert_eq!(states(&outages), [ErrorClass::Full]);
        assert_eq!(outages.refuses_writes(), Some(ErrorClass::Full));
        outages.succeeded(Proof::Committed);
        assert!(states(&outages).is_empty());
        assert_eq!(outages.refuses_writes(), None);
    }

    /// SQLite while another process locks the file: reads succeed all the time.
    #[tokio::test(start_paused = true)]
    async fn what_a_write_met_ends_with_a_write() {
        for class in [ErrorClass::Unavailable, ErrorClass::Timeout] {
            let outages = Outages::default();
            fail(&outages, class);
            outages.failed(class, true, &sqlx::Error::PoolTimedOut);
            fail(&outages, class);
            tokio::time::advance(CALM).await;
            outages.succeeded(Proof::Read);
            assert_eq!(states(&outages), [class]);
            assert_eq!(outages.refuses_writes(), None);
            outages.succeeded(Proof::Accepted);
            assert!(states(&outages).is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_of_one_statement_is_no_state_of_the_database() {
        let outages = Outages::default();
        for class in [ErrorClass::Constraint, ErrorClass::Fault, ErrorClass::Damaged] {
            fail(&outages, class);
        }
        assert!(states(&outages).is_empty());
    }
}
