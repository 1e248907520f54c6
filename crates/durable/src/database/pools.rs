//! The pools of a gateway, and their replacement when the connections are unusable.
//!
//! A pool is replaced as a whole. Removing single connections would need their
//! cooperation: the driver pings a connection that is returned and waits for
//! the answer without a limit, so each one that stopped answering in the middle
//! of a statement would occupy its slot for good.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Database, Pool};

use super::health::{Health, IdlePing};
use super::idle::IdleCache;

/// Where connections come from.
pub enum Source<Db: Database> {
    /// One writer and many readers of a file, never replaced: a file does not
    /// stop answering, and its only writer must not exist twice.
    Fixed { writer: Pool<Db>, readers: Pool<Db> },
    /// One pool for everything, replaced when its connections are unusable.
    Replaceable {
        /// Makes a pool, which sends these pings.
        make: Box<dyn Fn(IdlePing) -> Pool<Db> + Send + Sync>,
        /// How many connections stay in the idle cache for records, and for how
        /// long they are used without a ping.
        idle: usize,
        fresh_for: Duration,
    },
}

impl<Db: Database> fmt::Debug for Source<Db> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed { .. } => "Fixed",
            Self::Replaceable { .. } => "Replaceable",
        })
    }
}

#[derive(Debug)]
pub(super) struct Pools<Db: Database> {
    source: Source<Db>,
    current: Mutex<Current<Db>>,
}

/// The pools of one generation.
#[derive(Debug)]
pub(super) struct Current<Db: Database> {
    pub(super) writer: Pool<Db>,
    pub(super) readers: Pool<Db>,
    /// Belongs to this generation, so its connections end with it.
    pub(super) idle: Arc<IdleCache<Db>>,
    generation: u64,
}

impl<Db: Database> Clone for Current<Db> {
    fn clone(&self) -> Self {
        Self {
            writer: self.writer.clone(),
            readers: self.readers.clone(),
            idle: Arc::clone(&self.idle),
            generation: self.generation,
        }
    }
}

impl<Db: Database> Pools<Db> {
    pub(super) fn new(source: Source<Db>, health: &Arc<Health>) -> Self {
        let current = Mutex::new(Current::new(&source, health, 0));
        Self { source, current }
    }

    /// The pools to use now. Operations under way on the previous pools end
    /// there; those connections are closed when they are returned.
    pub(super) fn current(&self, health: &Arc<Health>) -> Current<Db> {
        self.renewed(health).clone()
    }

    fn renewed(&self, health: &Arc<Health>) -> MutexGuard<'_, Current<Db>> {
        // Nothing in here panics, so nobody can see half a replacement.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = health.generation();
        if current.generation != generation && matches!(self.source, Source::Replaceable { .. }) {
            let old =
                std::mem::replace(&mut *current, Current::new(&self.source, health, generation));
            // From here on nobody gets a connection from the old pool. Nothing
            // waits for its last connection, which may never be returned. The
            // idle ones are dropped now, or closing would wait for them.
            let Current { writer, readers, idle, .. } = old;
            drop((readers, idle));
            tokio::spawn(async move { writer.close().await });
        }
        current
    }
}

impl<Db: Database> Current<Db> {
    fn new(source: &Source<Db>, health: &Arc<Health>, generation: u64) -> Self {
        match source {
            Source::Fixed { writer, readers } => Self {
                writer: writer.clone(),
                readers: readers.clone(),
                idle: Arc::new(IdleCache::new(0, Duration::ZERO)),
                generation,
            },
            Source::Replaceable { make, idle, fresh_for } => {
                let pool = make(IdlePing { health: Arc::clone(health), generation });
                let idle = Arc::new(IdleCache::new(*idle, *fresh_for));
                Self { writer: pool.clone(), readers: pool, idle, generation }
            }
        }
    }
}
