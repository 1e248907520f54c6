//! `freeze`: the cost of resources that wait under a freeze, as a share of one
//! core. On SQLite in this process, so that the figure includes the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use slipway_app::operations::control;
use slipway_controller::resources::Batching;

use crate::database::Database;
use crate::machine;
use crate::plane::{Plane, SWEEP, operator};
use crate::population::{self, State};
use crate::report::Report;
use crate::substrate::{self, Memory};

/// How long the cost is measured: long enough that every resource is due at
/// least once, whatever its current interval.
const MEASURED: Duration = Duration::from_secs(150);

/// Declares this many resources under a freeze, lets the loop withhold the
/// action of each, and measures their cost from then on.
pub(crate) async fn run(resources: u32) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let database = Database::sqlite()?;
    let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
    let plane = Plane::open("bench", &database, &substrate).await?;
    let hour = Duration::from_secs(3_600);
    control::freeze(&plane.context, &operator(), hour, "bench").await?;
    population::make(&database.pool().await?, resources, State::Pending).await?;

    let mut report = Report::default();
    let running = plane.start(Batching::default(), SWEEP);
    while control::withheld(&plane.context, &operator(), one_page(resources)).await?.0.len()
        < usize::try_from(resources)?
    {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let claimed_before = running.status.snapshot().claimed;
    let (before, started) = (machine::cpu_seconds()?, Instant::now());
    tokio::time::sleep(MEASURED).await;
    let seconds = started.elapsed().as_secs_f64();
    let share = 100.0 * (machine::cpu_seconds()? - before) / seconds;
    let claimed = running.status.snapshot().claimed - claimed_before;
    running.stop().await?;

    let how = format!("{resources} Pending, {:.0} observed a second", claimed as f64 / seconds);
    report.note("frozen_core_percent", share, &how);
    report.finish();
    Ok(())
}

fn one_page<C>(resources: u32) -> slipway_app::ports::store::Page<C> {
    slipway_app::ports::store::Page { after: None, limit: resources }
}
