//! A cache of connections between two hot statements.
//!
//! The pool pings each connection that is returned to it, which costs a round
//! trip and a task for every statement. A record is one statement, so that
//! would double it. This cache hands out connections that were used a moment
//! ago instead. A connection whose statement failed, or that was idle for
//! longer, returns to the pool, which pings it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{Database, Pool};

#[derive(Debug)]
pub(super) struct IdleCache<Db: Database> {
    idle: Mutex<Vec<(PoolConnection<Db>, Instant)>>,
    most: usize,
    /// A connection that was idle for longer is pinged before it is used.
    fresh_for: Duration,
}

impl<Db: Database> IdleCache<Db> {
    pub(super) fn new(most: usize, fresh_for: Duration) -> Self {
        Self { idle: Mutex::new(Vec::new()), most, fresh_for }
    }

    pub(super) async fn take(&self, pool: &Pool<Db>) -> Result<PoolConnection<Db>, sqlx::Error> {
        match self.pop() {
            Some(connection) => Ok(connection),
            None => pool.acquire().await,
        }
    }

    /// Only after a statement that succeeded.
    pub(super) fn give_back(&self, connection: PoolConnection<Db>) {
        let mut idle = self.idle();
        if idle.len() < self.most {
            idle.push((connection, Instant::now()));
        }
    }

    /// Returns one connection to a pool that has no other left to hand out. A
    /// cached connection would otherwise wait for the next hot statement while
    /// everybody else waits for a connection.
    pub(super) fn make_room(&self, pool: &Pool<Db>) {
        if pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections() {
            drop(self.idle().pop());
        }
    }

    fn pop(&self) -> Option<PoolConnection<Db>> {
        let mut idle = self.idle();
        let (connection, since) = idle.pop()?;
        if since.elapsed() < self.fresh_for {
            return Some(connection);
        }
        // The last one in was the youngest, so all of them return to the pool.
        idle.clear();
        None
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(PoolConnection<Db>, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
