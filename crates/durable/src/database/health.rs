//! Whether the connections of a gateway are still usable.
//!
//! A fault that one connection shows concerns all connections to that server: the
//! host is gone, or it became a read-only standby while another took over. The
//! gateway then uses none of them again. It does not ping them either, because the
//! ping is what would hang. So a whole generation of connections ends at once.

use std::io::{Error as IoError, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::Connection;

use super::outage::Outages;

/// The server's limit for a statement, unless configured otherwise.
pub const STATEMENT_LIMIT: Duration = Duration::from_secs(30);

/// What an operation gets beyond the limit of a statement: time for the server
/// to cancel the statement and answer, and three seconds to get a connection.
const BEYOND_A_STATEMENT: Duration = Duration::from_secs(5);

/// How long an idle connection may take to answer a ping. Shorter than a caller
/// waits for a connection: a caller that gives up first learns nothing about the
/// server, because all connections may just be busy.
const PING_LIMIT: Duration = Duration::from_secs(2);

/// Longer than all callers need to notice the same loss, and short compared to
/// the time that a server needs to come back.
const SHORTEST_GENERATION: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Health {
    /// How long an operation may take on this side: the server's own limits
    /// cannot end the wait for a server that is gone.
    pub(super) limit: Duration,
    generation: AtomicU64,
    saw_read_only: AtomicBool,
    last_replacement: Mutex<Option<Instant>>,
    pub(super) outages: Outages,
}

impl Health {
    pub(super) fn new(statement_limit: Duration) -> Self {
        Self {
            limit: statement_limit + BEYOND_A_STATEMENT,
            generation: AtomicU64::new(0),
            saw_read_only: AtomicBool::new(false),
            last_replacement: Mutex::new(None),
            outages: Outages::default(),
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Ends the generation, once for all callers that notice the same fault: a server
    /// that stays read-only refuses every write, which is no reason to reconnect for
    /// each of them, and connections that stop answering together time out together.
    pub(super) fn replace_pools(&self) {
        let mut last = self.last_replacement.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= SHORTEST_GENERATION) {
            *last = Some(Instant::now());
            self.end_generation();
        }
    }

    fn end_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// A session keeps the read-only default that it began with, and a server
    /// that became a standby stays one for its old connections.
    pub(super) fn note_read_only(&self) {
        self.saw_read_only.store(true, Ordering::Release);
        self.replace_pools();
    }

    /// Whether the database was read-only since the last call. One connection that
    /// accepts writes then proves nothing about the others, so all of them are replaced.
    pub(super) fn leave_read_only(&self) -> bool {
        let left = self.saw_read_only.swap(false, Ordering::AcqRel);
        if left {
            self.end_generation();
        }
        left
    }
}

/// Pings connections that were idle, for the pool that hands them out.
#[derive(Debug, Clone)]
pub struct IdlePing {
    pub(super) health: Arc<Health>,
    /// Of the pool. A connection of an earlier one proves nothing about its successor.
    pub(super) generation: u64,
}

impl IdlePing {
    /// Without an answer in time all pools are replaced. Otherwise each caller
    /// would wait for one of the connections, and only that one would be closed.
    pub async fn send<C: Connection>(&self, connection: &mut C) -> Result<(), sqlx::Error> {
        match tokio::time::timeout(PING_LIMIT, connection.ping()).await {
            Ok(answer) => answer,
            Err(_) => {
                if self.generation == self.health.generation() {
                    self.health.replace_pools();
                }
                let text = format!("an idle connection did not answer within {PING_LIMIT:?}");
                Err(sqlx::Error::Io(IoError::new(ErrorKind::TimedOut, text)))
            }
        }
    }
}
