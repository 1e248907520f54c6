//! Our side: the library as shipped, with a store that has the same number of connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use slipway_tenants::{
    Cancel, ClaimFrom, EdgeSink, Executor, JobStore, NewJob, Options, Outcome, PostgresStore,
    StateStore as _, Step, Steps,
};
use slipway_testkit::postgres::{Postgres, TestDatabase};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::sync::Notify;

use super::{CONNECTIONS, sink};

/// Jobs of one claim.
const CLAIMED: u32 = 512;

/// Batches of jobs that are on their way at the same time.
const BATCHES: usize = 4;

/// Sets that are written at the same time; two connections are left for claims and insertions.
const WRITERS: usize = 6;

/// Jobs that one call inserts; two calls insert at the same time.
const INSERTED: usize = 256;

/// Between two claims when nothing was due.
const LONGEST_WAIT: Duration = Duration::from_millis(10);

pub(super) struct Ours {
    pub(super) store: Arc<dyn JobStore>,
    /// Beside the store: what is read here was committed.
    pub(super) beside: PgPool,
    executor: Executor,
    next: AtomicU32,
    _database: TestDatabase,
}

pub(super) fn no_op() -> Steps {
    Step::ALL.into_iter().fold(Steps::new(), |steps, step| steps.with(step, |_| async { Ok(()) }))
}

impl Ours {
    pub(super) async fn new(
        server: &Postgres,
        sink: Option<Arc<dyn EdgeSink<sqlx::Postgres>>>,
    ) -> anyhow::Result<Self> {
        let database = server.database("ours").await;
        let beside =
            PgPoolOptions::new().max_connections(CONNECTIONS).connect(database.url()).await?;
        let mut store = PostgresStore::connect(database.url(), CONNECTIONS, "")?;
        store.create_table().await?;
        if let Some(sink) = sink {
            sink::create(&beside).await?;
            store = store.with_sink(sink);
        }
        let store: Arc<dyn JobStore> = Arc::new(store);
        let executor = mk_executor(&store, no_op())?;
        Ok(Self { store, beside, executor, next: AtomicU32::new(0), _database: database })
    }

    /// Jobs per second from their insertion to the last edge of the last one.
    pub(super) async fn many(&self, jobs: u32) -> anyhow::Result<f64> {
        let started = Instant::now();
        self.run(&self.executor, jobs).await?;
        Ok(f64::from(jobs) / started.elapsed().as_secs_f64())
    }

    /// Inserts jobs and works on them at the same time, as a service does.
    pub(super) async fn run(&self, executor: &Executor, jobs: u32) -> anyhow::Result<()> {
        let first = self.next.fetch_add(jobs, Ordering::Relaxed);
        let name = |n: u32| NewJob::new(format!("job-{n}"), format!("tenant-{n}"));
        let new: Vec<_> = (first..first + jobs).map(name).collect();
        let (left, inserted) = (AtomicU32::new(jobs), Notify::new());
        let insert = async |part: &[NewJob]| {
            for set in part.chunks(INSERTED) {
                for answer in self.store.upsert_many(set).await {
                    answer?;
                }
                inserted.notify_waiters();
            }
            anyhow::Ok(())
        };
        let dispatch = async || {
            while left.load(Ordering::Relaxed) > 0 {
                // Before the claim, so that no insertion after it is missed.
                let more = inserted.notified();
                let claimed = executor.claim(ClaimFrom::Partition(""), CLAIMED).await?;
                if claimed.jobs.is_empty() {
                    // Nobody announces that the last job has ended.
                    let _ = tokio::time::timeout(LONGEST_WAIT, more).await;
                }
                for (id, outcome) in executor.work(claimed, &Cancel::new()).await {
                    anyhow::ensure!(outcome? == Outcome::Ready, "{id} is not ready");
                    left.fetch_sub(1, Ordering::Relaxed);
                }
            }
            anyhow::Ok(())
        };
        let half = new.len() / 2;
        let inserts = [insert(&new[..half]), insert(&new[half..])];
        let batches = futures::future::try_join_all((0..BATCHES).map(|_| dispatch()));
        tokio::try_join!(futures::future::try_join_all(inserts), batches)?;
        Ok(())
    }

    pub(super) async fn single(&self, id: &str) -> anyhow::Result<()> {
        self.store.upsert(&NewJob::new(id, id)).await?;
        anyhow::ensure!(self.executor.run(id).await? == Outcome::Ready, "{id} is not ready");
        Ok(())
    }

    /// Every edge and insertion has its event and its audit entry.
    pub(super) async fn check_sink(&self) -> anyhow::Result<()> {
        let jobs = i64::from(self.next.load(Ordering::Relaxed));
        for (table, rows) in sink::counts(&self.beside).await? {
            anyhow::ensure!(rows == jobs * 6, "{rows} rows in {table} of {jobs} jobs");
        }
        Ok(())
    }
}

pub(super) fn mk_executor(store: &Arc<dyn JobStore>, steps: Steps) -> anyhow::Result<Executor> {
    let options = Options { writers: WRITERS, ..Options::default() };
    let builder = Executor::builder().store(Arc::clone(store)).steps(steps);
    Ok(builder.options(options).build()?)
}
