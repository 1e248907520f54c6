//! The raw side: prepared inserts of one row each, one commit each, with as
//! many connections as our side has.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::database::{CONNECTIONS, Pool};

/// Duration of one half of the raw side.
pub(crate) const HALF: Duration = Duration::from_secs(3);

/// About as long as the details of an audit entry.
const PAYLOAD: &str = "{\"from\":\"Enrolling\",\"to\":\"Ready\"}";

const INSERT: &str = "INSERT INTO raw (id, p) VALUES ($1, $2)";

pub(crate) async fn prepare(pool: &Pool) -> anyhow::Result<()> {
    let kind = match pool {
        Pool::Postgres(_) => "uuid",
        Pool::Sqlite(_) => "blob",
    };
    pool.run(format!("CREATE TABLE raw (id {kind} PRIMARY KEY, p text)")).await
}

/// Commits per second over one half.
pub(crate) async fn measure(pool: &Pool) -> anyhow::Result<f64> {
    let writers = match pool {
        Pool::Postgres(_) => CONNECTIONS,
        Pool::Sqlite(_) => 1,
    };
    let started = Instant::now();
    let tasks: Vec<_> =
        (0..writers).map(|_| tokio::spawn(write_until(pool.clone(), started + HALF))).collect();
    let mut commits = 0_u32;
    for task in tasks {
        commits += task.await??;
    }
    Ok(f64::from(commits) / started.elapsed().as_secs_f64())
}

async fn write_until(pool: Pool, end: Instant) -> anyhow::Result<u32> {
    macro_rules! write {
        ($pool:expr) => {{
            let mut connection = $pool.acquire().await?;
            let mut commits = 0;
            while Instant::now() < end {
                let id = identity();
                sqlx::query(INSERT).bind(id).bind(PAYLOAD).execute(&mut *connection).await?;
                commits += 1;
            }
            Ok(commits)
        }};
    }
    match pool {
        Pool::Postgres(pool) => write!(pool),
        Pool::Sqlite(pool) => write!(pool),
    }
}

#[expect(clippy::disallowed_methods, reason = "the ids of the raw side, drawn as ours are")]
fn identity() -> Uuid {
    Uuid::now_v7()
}
