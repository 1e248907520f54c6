//! Transitions per second against raw commits per second, in one run.
//!
//! 10,000 resources go from Pending to Ready. The count is of recorded
//! transitions, each with its history, its audit entry and, if it has one, its
//! event. There are two ways. A standalone resource expects no node and is
//! Ready in one step. A resource with a node goes from Pending to Enrolling,
//! which mints its token, and from there to Ready; the nodes enrol while the
//! loops are stopped, and the rate of that is shown separately.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use slipway_controller::resources::Batching;
use slipway_testkit::postgres::Postgres;

use crate::database::{Database, Kind, Pool};
use crate::plane::{Plane, SWEEP};
use crate::population::{self, State};
use crate::substrate::{self, Memory};
use crate::{machine, raw};

/// One comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    pub(crate) transitions_per_second: f64,
    pub(crate) commits_before: f64,
    pub(crate) commits_after: f64,
    /// `None` if no node is expected.
    pub(crate) enrolments_per_second: Option<f64>,
    /// Processor time of this process and the server together. Other programs
    /// on the machine disturb it less than the rates.
    pub(crate) cpu_us_per_transition: f64,
    pub(crate) cpu_us_per_commit: f64,
}

/// The way of a resource to Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Standalone,
    WithNode,
}

impl Compared {
    pub(crate) fn ratio(&self) -> f64 {
        self.transitions_per_second / f64::midpoint(self.commits_before, self.commits_after)
    }
}

pub(crate) async fn compare(
    kind: Kind,
    server: &Postgres,
    resources: u32,
    batching: Batching,
    way: Way,
) -> anyhow::Result<Compared> {
    let database = Database::new(kind, server).await?;
    let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
    let plane = Plane::open("bench", &database, &substrate).await?;
    let pool = database.pool().await?;
    raw::prepare(&pool).await?;
    if way == Way::Standalone {
        pool.run(STANDALONE.to_owned()).await?;
    }
    population::make(&pool, resources, State::Pending).await?;

    let raw_started = cpu(kind, server)?;
    let commits_before = raw::measure(&pool).await?;
    let started = cpu(kind, server)?;
    let (mut walked, mut enrolments_per_second, mut steps) = (Duration::ZERO, None, 1);
    if way == Way::WithNode {
        walked += walk(&plane, &pool, batching, ENROLLING).await?;
        let started = Instant::now();
        enrol_all(&plane, resources).await?;
        enrolments_per_second = Some(f64::from(resources) / started.elapsed().as_secs_f64());
        steps = 2;
    }
    walked += walk(&plane, &pool, batching, READY).await?;
    let spent = cpu(kind, server)? - started;
    let commits_after = raw::measure(&pool).await?;

    let transitions = pool.count(TRANSITIONS).await?;
    anyhow::ensure!(transitions == i64::from(steps * resources), "{transitions} transitions");
    let audited = pool.count(AUDITED).await?;
    anyhow::ensure!(audited == i64::from(resources), "{audited} audit entries of Ready");
    let announced = pool.count(ANNOUNCED).await?;
    anyhow::ensure!(announced == i64::from(resources), "{announced} events of Ready");
    Ok(Compared {
        transitions_per_second: f64::from(steps * resources) / walked.as_secs_f64(),
        commits_before,
        commits_after,
        enrolments_per_second,
        cpu_us_per_transition: spent * 1e6 / f64::from(steps * resources),
        cpu_us_per_commit: (started - raw_started) * 1e6
            / (commits_before * raw::HALF.as_secs_f64()),
    })
}

/// Processor time so far of all processes that take part.
fn cpu(kind: Kind, server: &Postgres) -> anyhow::Result<f64> {
    let ours = machine::cpu_seconds()?;
    match (kind, server.folder()) {
        (Kind::Postgres, Some(folder)) => {
            Ok(ours + machine::server_cpu_seconds(&folder.join("data"))?)
        }
        _ => Ok(ours),
    }
}

/// Makes the seeded blueprint standalone, before anything refers to it.
const STANDALONE: &str = "UPDATE blueprint_versions SET mesh_role = 'standalone'";
/// Rows that have not arrived yet. One is enough to know that, and cheaper to
/// count than all.
const ENROLLING: &str = "SELECT count(*) FROM (SELECT 1 FROM provisioned_resources \
     WHERE status <> 'Enrolling' LIMIT 1) AS one";
const READY: &str = "SELECT count(*) FROM (SELECT 1 FROM provisioned_resources \
     WHERE status <> 'Ready' LIMIT 1) AS one";
const PARK: &str = "UPDATE provisioned_resources SET due_at = NULL \
     WHERE status = 'Enrolling' AND lease_until IS NULL AND due_at IS NOT NULL";
/// Transitions, quiet and announced.
const TRANSITIONS: &str = "SELECT \
     (SELECT count(*) FROM state_changes WHERE from_state IS NOT NULL) \
     + (SELECT count(*) FROM audit_entries WHERE from_state IS NOT NULL)";
const AUDITED: &str =
    "SELECT count(*) FROM audit_entries WHERE verb = 'provisioned_resource.phase'";
const ANNOUNCED: &str =
    "SELECT count(*) FROM outbox_events WHERE event_type = 'broker.ProvisionedResourceReady'";

/// Runs the loops until all rows have arrived; returns how long that took.
async fn walk(
    plane: &Plane,
    pool: &Pool,
    batching: Batching,
    left: &'static str,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let running = plane.start(batching, SWEEP);
    // A query costs both sides time, so it runs rarely. The last one is late by
    // at most this pause, which makes the figure worse and not better.
    while pool.count(left).await? > 0 {
        anyhow::ensure!(started.elapsed() < Duration::from_secs(300), "the walk does not end");
        // The loop would observe waiting resources again and again, and here
        // all of them wait for the last one. Waiting is no transition, so they
        // are parked.
        if left == ENROLLING {
            pool.run(PARK.to_owned()).await?;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let took = started.elapsed();
    running.stop().await?;
    Ok(took)
}

async fn enrol_all(plane: &Plane, resources: u32) -> anyhow::Result<()> {
    stream::iter(1..=resources)
        .map(|number| async move {
            let token = plane.substrate.token(&format!("bench-{number}"));
            plane.enrol(token.ok_or_else(|| anyhow::anyhow!("no token for {number}"))?).await
        })
        .buffer_unordered(32)
        .try_collect::<()>()
        .await
}
