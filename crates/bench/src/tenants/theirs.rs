//! The document's executor: for each job an insertion, a read, five transitions of one row each
//! in a transaction of its own, and a read of the result. Prepared statements, one connection
//! for each worker, no-op steps.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use slipway_testkit::postgres::{Postgres, TestDatabase};
use sqlx::PgConnection;
use sqlx::postgres::{PgPool, PgPoolOptions};

use super::CONNECTIONS;

/// Table and indexes as the document has them.
const TABLE: [&str; 4] = [
    "CREATE TABLE provisioning_jobs (id varchar(255) PRIMARY KEY, tenant_id varchar(255) NOT NULL, \
     state varchar(32) NOT NULL DEFAULT 'pending', attempts integer NOT NULL DEFAULT 0, \
     last_error text NOT NULL DEFAULT '', metadata jsonb NOT NULL DEFAULT '{}', \
     created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now())",
    "CREATE INDEX jobs_tenant ON provisioning_jobs (tenant_id)",
    "CREATE INDEX jobs_state ON provisioning_jobs (state)",
    "CREATE UNIQUE INDEX jobs_active ON provisioning_jobs (tenant_id) \
     WHERE state NOT IN ('ready', 'failed')",
];
const INSERT: &str = "INSERT INTO provisioning_jobs (id, tenant_id, metadata) VALUES ($1, $2, '{}') \
     ON CONFLICT (id) DO NOTHING";
const GET: &str = "SELECT id, tenant_id, state, attempts, last_error, metadata::text, created_at::text, \
     updated_at::text FROM provisioning_jobs WHERE id = $1";
const TRANSITION: &str = "UPDATE provisioning_jobs SET state = $3, attempts = attempts + 1, \
     last_error = '', metadata = '{}', updated_at = now() WHERE id = $1 AND state = $2";
const STATES: [&str; 6] =
    ["pending", "schema_created", "role_created", "migrated", "seeded", "ready"];

pub(super) struct Theirs {
    pool: PgPool,
    next: AtomicU32,
    _database: TestDatabase,
}

impl Theirs {
    pub(super) async fn new(server: &Postgres) -> anyhow::Result<Self> {
        let database = server.database("theirs").await;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .test_before_acquire(false)
            .connect(database.url())
            .await?;
        for statement in TABLE {
            sqlx::query(statement).execute(&pool).await?;
        }
        Ok(Self { pool, next: AtomicU32::new(0), _database: database })
    }

    pub(super) async fn checkpoint(&self) -> anyhow::Result<()> {
        sqlx::query("CHECKPOINT").execute(&self.pool).await?;
        Ok(())
    }

    /// Jobs per second of as many workers as there are connections.
    pub(super) async fn many(&self, time: Duration) -> anyhow::Result<f64> {
        let started = Instant::now();
        let worker = async || {
            let (mut connection, mut jobs) = (self.pool.acquire().await?, 0_u32);
            while started.elapsed() < time {
                let n = self.next.fetch_add(1, Ordering::Relaxed);
                run(&mut connection, &format!("job-{n}")).await?;
                jobs += 1;
            }
            anyhow::Ok(jobs)
        };
        let workers = (0..CONNECTIONS).map(|_| worker());
        let jobs: u32 = futures::future::try_join_all(workers).await?.into_iter().sum();
        Ok(f64::from(jobs) / started.elapsed().as_secs_f64())
    }

    pub(super) async fn single(&self, id: &str) -> anyhow::Result<()> {
        let mut connection = self.pool.acquire().await?;
        run(&mut connection, id).await
    }
}

async fn run(connection: &mut PgConnection, id: &str) -> anyhow::Result<()> {
    sqlx::query(INSERT).bind(id).bind(id).execute(&mut *connection).await?;
    sqlx::query(GET).bind(id).fetch_one(&mut *connection).await?;
    for edge in STATES.windows(2) {
        let transition = sqlx::query(TRANSITION).bind(id).bind(edge[0]).bind(edge[1]);
        anyhow::ensure!(transition.execute(&mut *connection).await?.rows_affected() == 1, "stale");
    }
    sqlx::query(GET).bind(id).fetch_one(connection).await?;
    Ok(())
}
