//! A purge of many rows with readers beside it: the time of a read while the purge runs,
//! relative to the same reads before it. Steps are those of the loop, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use slipway_app::broker::port::ResourceFilter;
use slipway_app::deletion::purge::{BATCH, rest};
use slipway_app::ports::Stores;
use slipway_app::ports::store::Page;
use slipway_core::access::audit::Actor;
use slipway_core::deletion::purge::{PurgeSnapshot, Trigger, begin, end};
use slipway_core::deletion::record::DeletionState;
use slipway_core::ids::DeletionId;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::database::{Database, Kind, Pool, durable_server};
use crate::plane::Plane;
use crate::population::{self, State};
use crate::report::Report;
use crate::substrate::{self, Memory};

/// Rows of one deleted resource: itself, its attempt, a line of history, a token, a node.
const ROWS_OF_EACH: u32 = 5;
/// Readers at the same time, and the pause between two reads of one.
const READERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(5);
/// How long the readers read alone.
const ALONE: Duration = Duration::from_secs(10);

/// Purges this many rows on both databases, and as many stay.
pub(crate) async fn purge(rows: u32, report: &mut Report) -> anyhow::Result<()> {
    let server = durable_server()?;
    for kind in [Kind::Postgres, Kind::Sqlite] {
        let database = Database::new(kind, &server).await?;
        let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
        let plane = Plane::open("bench", &database, &substrate).await?;
        let pool = database.pool().await?;
        let deleted = rows / ROWS_OF_EACH;
        population::make(&pool, 2 * deleted, State::Idle).await?;
        let id = mark(&pool, deleted).await?;
        population::analyse(&pool).await?;
        let stores = &plane.context.stores;

        let alone = read_while(stores, tokio::time::sleep(ALONE)).await?.1;
        let (purged, beside) = read_while(stores, purge_all(stores.clone(), id)).await?;
        let (removed, took) = purged?;
        ensure!(removed >= u64::from(rows), "{removed} rows were purged, not {rows}");
        let how = format!(
            "{removed} rows in {took:.2?}; p99 of {} reads {:.2?}, alone {:.2?}",
            beside.len(),
            p99(&beside),
            p99(&alone)
        );
        let ratio = p99(&beside).as_secs_f64() / p99(&alone).as_secs_f64();
        report.note(&format!("purge_reader_p99_{}", kind.name()), ratio, &how);
    }
    Ok(())
}

/// Marks the first resources as members of a done deletion whose retention is over.
async fn mark(pool: &Pool, deleted: u32) -> anyhow::Result<DeletionId> {
    let id = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);
    let (now, bytes, resource) = match pool {
        Pool::Postgres(_) => (
            "clock_timestamp()",
            format!("'{id}'::uuid"),
            "(SELECT id FROM resources ORDER BY id LIMIT 1)",
        ),
        Pool::Sqlite(_) => (
            "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            format!("unhex('{}')", id.simple()),
            "(SELECT id FROM resources ORDER BY id LIMIT 1)",
        ),
    };
    let members = format!("(SELECT id FROM resources ORDER BY id LIMIT {deleted})");
    for statement in [
        format!(
            "UPDATE resources SET deletion_id = {bytes}, deleted_at = {now} WHERE id IN {members}"
        ),
        format!(
            "UPDATE provisioned_resources SET status = 'Deleted', absence_proven_at = {now}, \
             due_at = NULL WHERE resource_id IN {members}"
        ),
        format!(
            "UPDATE nodes SET deregistered_at = {now}, key_hash = NULL WHERE resource_id IN {members}"
        ),
        format!(
            "INSERT INTO deletions (id, kind, target_id, state, requested_by, reason, done_at, \
             restorable_until) SELECT {bytes}, 'resource', {resource}, 'done', 'bench', 'bench', \
             {now}, {now}"
        ),
    ] {
        pool.run(statement).await?;
    }
    Ok(DeletionId::new(id))
}

/// As the loop does it.
async fn purge_all(stores: Stores, id: DeletionId) -> anyhow::Result<(u64, Duration)> {
    let actor = Actor::new("loop:bench");
    let begun = Instant::now();
    let mut rule = |snapshot: &PurgeSnapshot| begin(snapshot, Trigger::Retention, &actor);
    stores.deletion.purge_decide(id, &mut rule).await?;
    let mut removed = 0;
    loop {
        let started = Instant::now();
        let step = stores.deletion.purge_batch(id, BATCH).await?;
        removed += step.removed;
        if !step.is_left {
            break;
        }
        rest(started.elapsed()).await;
    }
    let mut rule = |snapshot: &PurgeSnapshot| Ok(end(snapshot, &actor));
    stores.deletion.purge_decide(id, &mut rule).await?;
    let after = stores.deletion.deletion_fetch(id).await?;
    ensure!(after.is_some_and(|found| found.state == DeletionState::Purged), "it is not purged");
    Ok((removed, begun.elapsed()))
}

/// Reads while something else runs: pages of the list of resources.
async fn read_while<T>(
    stores: &Stores,
    other: impl Future<Output = T>,
) -> anyhow::Result<(T, Vec<Duration>)> {
    let over = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (stores, over) = (stores.clone(), Arc::clone(&over));
        readers.spawn(async move {
            let mut times = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let page = Page { after: None, limit: 50 };
                stores.broker.resource_list(&ResourceFilter::default(), page).await?;
                times.push(begun.elapsed());
                tokio::time::sleep(PAUSE).await;
            }
            anyhow::Ok(times)
        });
    }
    let answer = other.await;
    over.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    while let Some(read) = readers.join_next().await {
        times.extend(read??);
    }
    times.sort_unstable();
    ensure!(times.len() >= 100, "{} reads are too few", times.len());
    Ok((answer, times))
}

fn p99(sorted: &[Duration]) -> Duration {
    sorted[(sorted.len() * 99 / 100).min(sorted.len() - 1)]
}
