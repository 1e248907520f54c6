//! Claims by sets, and by one statement for each job: the same statement with another limit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use slipway_tenants::{ClaimFrom, Demand, JobStore as _, PostgresStore, StateStore as _};
use slipway_testkit::postgres::Postgres;
use sqlx::postgres::{PgPool, PgPoolOptions};

use super::CONNECTIONS;
use crate::report::Report;

/// Jobs that are due in each measurement.
const JOBS: usize = 8_000;

/// Jobs of one claim, as the dispatcher asks for.
const SET: u32 = 256;

const LEASE: Duration = Duration::from_secs(600);

const ROWS: &str = "INSERT INTO provisioning_jobs (id, tenant_id) \
     SELECT 'job-' || n, 'tenant-' || n FROM generate_series(1, 8000) AS n";

pub(super) async fn measure(
    server: &Postgres,
    rounds: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let database = server.database("claims").await;
    let store = PostgresStore::connect(database.url(), CONNECTIONS, "")?;
    store.create_table().await?;
    let pool = PgPoolOptions::new().max_connections(1).connect(database.url()).await?;
    let mut figures = Vec::new();
    for _ in 0..rounds {
        fill(&pool).await?;
        let one = claim_all(&store, 1).await?;
        fill(&pool).await?;
        let sets = claim_all(&store, SET).await?;
        figures.push((sets / one, sets, one));
    }
    figures.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (ratio, sets, one) = figures[figures.len() / 2];
    let how = format!("{sets:.0} / {one:.0} claims per second, worst round {:.1}", figures[0].0);
    report.note("claims_speedup", ratio, &how);
    Ok(())
}

async fn fill(pool: &PgPool) -> anyhow::Result<()> {
    for statement in
        ["TRUNCATE provisioning_jobs", ROWS, "VACUUM ANALYZE provisioning_jobs", "CHECKPOINT"]
    {
        sqlx::query(statement).execute(pool).await?;
    }
    Ok(())
}

/// Claims per second over all connections until nothing is due.
async fn claim_all(store: &PostgresStore, limit: u32) -> anyhow::Result<f64> {
    let (started, claimed) = (Instant::now(), AtomicUsize::new(0));
    let worker = async |n: u32| {
        let name = format!("worker-{n}");
        loop {
            let demand = Demand { worker: &name, limit, lease: LEASE };
            let jobs = store.claim(ClaimFrom::Partition(""), demand).await?;
            // What others have locked at this moment is theirs.
            if jobs.is_empty() && claimed.load(Ordering::Relaxed) >= JOBS {
                return anyhow::Ok(());
            }
            claimed.fetch_add(jobs.len(), Ordering::Relaxed);
        }
    };
    futures::future::try_join_all((0..CONNECTIONS).map(worker)).await?;
    let took = started.elapsed();
    anyhow::ensure!(claimed.load(Ordering::Relaxed) == JOBS, "each job was claimed once");
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let jobs = JOBS as f64;
    Ok(jobs / took.as_secs_f64())
}
