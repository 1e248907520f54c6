//! Connections that are kept at hand between records.
//!
//! The pool asks a connection whether it still stands each time it is given
//! back, which is a round trip and a task more for every statement. A record is
//! one statement, so that would double it. Connections that were used a moment
//! ago are taken again from here instead; one whose statement failed, or that
//! lay for longer, goes back to the pool and is asked there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;

use super::Db;
use super::pools::TRUSTED_FOR;

#[derive(Debug)]
pub(super) struct Kept {
    idle: Mutex<Vec<(PoolConnection<Db>, Instant)>>,
    most: usize,
}

impl Kept {
    /// Half of the pool at most: the other half is always there for the rest.
    pub(super) fn new(max_connections: u32) -> Self {
        let most = usize::try_from(max_connections / 2).unwrap_or(0);
        Self { idle: Mutex::default(), most }
    }

    pub(super) async fn take(&self, pool: &PgPool) -> Result<PoolConnection<Db>, sqlx::Error> {
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

    fn pop(&self) -> Option<PoolConnection<Db>> {
        let mut idle = self.idle();
        let (connection, since) = idle.pop()?;
        if since.elapsed() < TRUSTED_FOR {
            return Some(connection);
        }
        // The last one in was the youngest: all of them go back to be asked.
        idle.clear();
        None
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(PoolConnection<Db>, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
