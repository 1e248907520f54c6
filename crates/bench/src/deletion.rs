//! `deletion`: what planning and marking a whole project costs, relative to reading or
//! writing the same rows plainly, and what a purge costs its readers, on both databases.

mod purge;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use slipway_app::Context;
use slipway_app::deletion::plan;
use slipway_app::deletion::request::{self, DeleteOptions};
use slipway_core::catalog::project::Project;
use slipway_core::deletion::plan::Composed;
use slipway_core::subject::Subject;
use sqlx::Row as _;
use uuid::Uuid;

use crate::database::{Database, Kind, Pool, durable_server};
use crate::machine;
use crate::plane::{Plane, operator};
use crate::population::{self, State};
use crate::report::Report;
use crate::substrate::{self, Memory};

/// Each time is the median of this many.
const ROUNDS: usize = 11;

/// The rows that a plan reads, and of them what it reads.
const ROWS: &str = "SELECT r.id, r.handle, a.attempt, a.xr_name, a.blueprint_version_id, \
     n.id, n.hostname FROM resources r JOIN provisioned_resources a ON a.resource_id = r.id \
     LEFT JOIN nodes n ON n.provisioned_resource_id = a.id AND n.deregistered_at IS NULL \
     WHERE r.project_id = $1 AND r.deleted_at IS NULL ORDER BY r.id";

/// What the deletion of a project writes to each row.
const MARK: &str = "UPDATE resources SET deletion_id = $2, revision = revision + 1, \
     updated_at = updated_at WHERE id = $1";

pub(crate) async fn run(resources: u32) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let server = durable_server()?;
    let mut report = Report::default();
    for kind in [Kind::Postgres, Kind::Sqlite] {
        let database = Database::new(kind, &server).await?;
        let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
        let plane = Plane::open("bench", &database, &substrate).await?;
        let pool = database.pool().await?;
        population::make(&pool, resources, State::Ready).await?;
        let stores = &plane.context.stores;
        let project = stores.kind::<Project>().fetch("default", false).await?;
        let project = project.context("the seed has a project")?.id.into();
        plan_vs_list(&plane.context, &pool, kind, project, resources, &mut report).await?;
        cascade_vs_rows(&plane.context, &pool, kind, project, resources, &mut report).await?;
    }
    purge::purge(resources * 10, &mut report).await?;
    report.finish();
    Ok(())
}

/// In turn, so that neither has the better half of the run.
async fn plan_vs_list(
    context: &Context,
    pool: &Pool,
    kind: Kind,
    project: Subject,
    resources: u32,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (mut plans, mut lists) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 2 {
        let started = Instant::now();
        let read = ids(pool, project.id).await?.len();
        let listed = started.elapsed();
        ensure!(read == usize::try_from(resources)?, "{read} rows were read");
        let started = Instant::now();
        let made = plan::make(context, &operator(), project, true, Composed::default()).await?;
        let planned = started.elapsed();
        ensure!(made.shown.resources == u64::from(resources), "{} planned", made.shown.resources);
        if round >= 2 {
            lists.push(listed);
            plans.push(planned);
        }
    }
    let (planned, listed) = (median(plans), median(lists));
    let ratio = planned.as_secs_f64() / listed.as_secs_f64();
    let how = format!("{resources} resources planned in {planned:.1?}, read in {listed:.1?}");
    report.note(&format!("plan_vs_list_{}", kind.name()), ratio, &how);
    Ok(())
}

async fn cascade_vs_rows(
    context: &Context,
    pool: &Pool,
    kind: Kind,
    project: Subject,
    resources: u32,
    report: &mut Report,
) -> anyhow::Result<()> {
    let ids = ids(pool, project.id).await?;
    let (mut requests, mut rows, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        let started = Instant::now();
        let options = DeleteOptions {
            grace: Some(Duration::from_secs(3_600)),
            cascade: true,
            ..DeleteOptions::default()
        };
        let id = request::delete::<Project>(context, &operator(), "default", options).await?;
        requests.push(started.elapsed());
        let marked =
            pool.count("SELECT count(*) FROM resources WHERE deletion_id IS NOT NULL").await?;
        ensure!(marked == i64::from(resources), "{marked} marked");
        request::cancel(context, &operator(), id, None).await?;
        rows.push(one_by_one(pool, &ids, Commits::One).await?);
        // A tenth of them: each waits for the disk.
        let few = &ids[..ids.len() / 10];
        commits.push(one_by_one(pool, few, Commits::Each).await? * 10);
        pool.run("UPDATE resources SET deletion_id = NULL".to_owned()).await?;
    }
    let (requested, rows, commits) = (median(requests), median(rows), median(commits));
    let ratio = |other: Duration| other.as_secs_f64() / requested.as_secs_f64();
    let how =
        |other: Duration| format!("{resources} marked in {requested:.1?}, singly {other:.1?}");
    report.note(&format!("cascade_vs_rows_{}", kind.name()), ratio(commits), &how(commits));
    let key = format!("cascade_vs_rows_in_one_commit_{}", kind.name());
    report.note(&key, ratio(rows), &how(rows));
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Commits {
    One,
    Each,
}

/// One update per row by a prepared statement.
async fn one_by_one(pool: &Pool, ids: &[Uuid], commits: Commits) -> anyhow::Result<Duration> {
    let started = Instant::now();
    macro_rules! update {
        ($pool:expr) => {{
            let mut connection = $pool.acquire().await?;
            if commits == Commits::One {
                sqlx::query("BEGIN").execute(&mut *connection).await?;
            }
            for id in ids {
                sqlx::query(MARK).bind(id).bind(id).execute(&mut *connection).await?;
            }
            if commits == Commits::One {
                sqlx::query("COMMIT").execute(&mut *connection).await?;
            }
        }};
    }
    match pool {
        Pool::Postgres(pool) => update!(pool),
        Pool::Sqlite(pool) => update!(pool),
    }
    Ok(started.elapsed())
}

/// Reads the rows of a project once, every column that a plan reads.
async fn ids(pool: &Pool, project: Uuid) -> anyhow::Result<Vec<Uuid>> {
    macro_rules! read {
        ($pool:expr) => {{
            let found = sqlx::query(ROWS).bind(project).fetch_all($pool).await?;
            let mut ids = Vec::with_capacity(found.len());
            for row in &found {
                let _: (String, i32, String) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
                let _: (Uuid, Option<Uuid>, Option<String>) =
                    (row.try_get(4)?, row.try_get(5)?, row.try_get(6)?);
                ids.push(row.try_get(0)?);
            }
            ids
        }};
    }
    Ok(match pool {
        Pool::Postgres(pool) => read!(pool),
        Pool::Sqlite(pool) => read!(pool),
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
