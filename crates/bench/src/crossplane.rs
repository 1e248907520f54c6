//! `cargo xtask bench crossplane`: composites on a real API server. Both sides
//! of the comparison use an instant stand-in for Crossplane in this process.

mod documents;
mod memory;
mod raw;
mod react;
mod valve;
mod world;

use std::time::Instant;

use slipway_core::broker::phase::Phase;

use self::world::World;
use crate::plane;
use crate::report::Report;

pub(crate) use memory::COMMAND as MEMORY;
pub(crate) use memory::measure as measure_memory;

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    composites: u32,
    watched: u32,
    reactions: u32,
}

impl Size {
    pub(crate) const FULL: Self = Self { composites: 1_000, watched: 5_000, reactions: 300 };
    pub(crate) const QUICK: Self = Self { composites: 100, watched: 300, reactions: 30 };
}

pub(crate) async fn run(size: Size) -> anyhow::Result<()> {
    let mut report = Report::default();
    let world = World::start().await?;

    let raw = raw::applies(&world, size.composites).await?;
    let before = world.requests()?;
    // The rows exist before the clock starts: the cost of declaring is the database's.
    let made = world.declare_ahead("one", size.composites).await?;
    let started = Instant::now();
    world.begin();
    world.until(&made, Phase::Ready).await?;
    let taken = started.elapsed();
    let ours = f64::from(size.composites) / taken.as_secs_f64();
    let requests = world.requests()? - before;
    report.note(
        "apply_vs_raw",
        ours / raw.applies_per_second,
        &format!(
            "{ours:.0} Ready/s from declared, against {:.0} applies/s",
            raw.applies_per_second
        ),
    );
    report.note(
        "ready_vs_raw",
        ours / raw.ready_per_second,
        &format!("against {:.0} Ready/s of raw applies", raw.ready_per_second),
    );
    let each = requests as f64 / f64::from(size.composites);
    report.note("requests_per_composite", each, "from declared to Ready, watches left out");
    let sequential = raw::sequential_sweeps(&world, size.composites).await?;
    report.note(
        "sequential_sweep_seconds",
        sequential.as_secs_f64(),
        &format!("the peer's way, its pause of 30 s added; ours took {:.1} s", taken.as_secs_f64()),
    );

    let more = world.declare("many", size.watched.saturating_sub(size.composites)).await?;
    world.until(&more, Phase::Ready).await?;
    let quiet = world.requests()?;
    tokio::time::sleep(plane::SWEEP).await;
    let idle = world.requests()? - quiet;
    report.note("idle_requests_per_sweep", idle as f64, "watches and lists left out");

    let reactions = react::measure(&world, &made, size.reactions).await?;
    let quantile = |share: f64| {
        let rank = (reactions.len() as f64 * share).ceil() as usize;
        reactions.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    };
    report.note(
        "react_p99_ms",
        quantile(0.99),
        &format!("p50 {:.1} ms, {} watched", quantile(0.5), size.watched),
    );
    let bytes = memory::run(&world, size.watched)?;
    report.note("bytes_per_watched", bytes, "resident, in a process that only watches");
    world.stop().await?;
    report.finish();
    Ok(())
}
