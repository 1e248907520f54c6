//! The pool of connections, and the next one when its connections are not to be
//! believed any more.
//!
//! A pool is replaced as a whole. To throw out single connections would need
//! their cooperation: the driver asks a connection that comes back whether it
//! is still alive, and waits for the answer without a limit, so that each one
//! that went silent in the middle of a statement would keep its place for good.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tokio::time::Instant;

use super::Db;
use super::kept::Kept;
use crate::patience;

/// How long a caller waits for a connection, whether all are busy or the server
/// is gone. A person waits behind it, so it is short: the answer is 503, and a
/// loop comes again by itself.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(3);

/// A connection that was idle for longer is asked whether it still stands
/// before it is used. Asking each time is a round trip more for every
/// statement; one that broke within this time is found out by its first use,
/// which says that the database is not available.
pub(super) const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// A server that stays read-only refuses every write. That is no reason to
/// connect anew for each of them.
const SHORTEST_LIFE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Pools {
    options: PgConnectOptions,
    max_connections: u32,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    pool: PgPool,
    /// Of this pool, so that they end with it.
    kept: Arc<Kept>,
    generation: u64,
    since: Instant,
}

impl Pools {
    pub(super) fn new(options: PgConnectOptions, max_connections: u32) -> Self {
        let current = Mutex::new(Current::new(&options, max_connections));
        Self { options, max_connections, current }
    }

    /// Makes as many connections as there may be; fails with how many could be
    /// had and why it was not more.
    pub(super) async fn fill(&self) -> Result<(), (usize, sqlx::Error)> {
        let pool = self.current();
        let mut held = Vec::new();
        for _ in 0..self.max_connections {
            match pool.acquire().await {
                Ok(connection) => held.push(connection),
                Err(error) => return Err((held.len(), error)),
            }
        }
        Ok(())
    }

    /// The pool to use now. What is under way on the one before ends there; its
    /// connections are closed as they come back.
    pub(super) fn current(&self) -> PgPool {
        self.renewed().pool.clone()
    }

    /// A connection for one record.
    pub(super) async fn recorder(&self) -> Result<Recorder, sqlx::Error> {
        let (pool, kept) = {
            let current = self.renewed();
            (current.pool.clone(), Arc::clone(&current.kept))
        };
        let connection = kept.take(&pool).await?;
        Ok(Recorder { connection, kept })
    }

    fn renewed(&self) -> MutexGuard<'_, Current> {
        // Nothing in here panics, and half a replacement cannot be seen.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.generation != patience::generation() && current.since.elapsed() >= SHORTEST_LIFE
        {
            let fresh = Current::new(&self.options, self.max_connections);
            let old = std::mem::replace(&mut *current, fresh);
            // From here on nobody gets anything from it. That its last
            // connection is gone is not waited for: it may never be.
            tokio::spawn(async move { old.pool.close().await });
        }
        current
    }
}

/// A connection for one record, and where it is kept for the next.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) connection: PoolConnection<Db>,
    kept: Arc<Kept>,
}

impl Recorder {
    /// Only after a statement that succeeded.
    pub(super) fn give_back(self) {
        self.kept.give_back(self.connection);
    }
}

impl Current {
    fn new(options: &PgConnectOptions, max_connections: u32) -> Self {
        Self {
            generation: patience::generation(),
            pool: PgPoolOptions::new()
                .max_connections(max_connections)
                .acquire_timeout(ACQUIRE_LIMIT)
                .test_before_acquire(false)
                .before_acquire(|connection, metadata| {
                    Box::pin(async move {
                        if metadata.idle_for >= TRUSTED_FOR {
                            connection.ping().await?;
                        }
                        Ok(true)
                    })
                })
                .connect_lazy_with(options.clone()),
            kept: Arc::new(Kept::new(max_connections)),
            since: Instant::now(),
        }
    }
}
