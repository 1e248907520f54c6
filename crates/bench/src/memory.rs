//! The cost of an idle resource: processor time of one observation in a sweep,
//! and memory. Measured in a separate process on SQLite, so that the figure
//! includes the database and nothing else.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use slipway_controller::resources::Batching;

use crate::database::Database;
use crate::machine;
use crate::plane::Plane;
use crate::population::{self, State};
use crate::substrate::{Instant, Memory};

pub(crate) const COMMAND: &str = "idle-resources";

/// Longer than the bench runs: it starts each sweep by hand.
const NEVER: Duration = Duration::from_secs(3_600);

/// The figures of idle resources.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Idle {
    pub(crate) sweep_us_per_object: f64,
    pub(crate) bytes_per_idle_resource: f64,
}

/// Runs the measurement in a separate process.
pub(crate) fn run(objects: u32) -> anyhow::Result<Idle> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).args([COMMAND, &objects.to_string()]).output()?;
    anyhow::ensure!(
        output.status.success(),
        "the measurement of idle resources failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    let figures: Value = serde_json::from_str(text.lines().last().context("no figures")?)?;
    let figure = |key: &str| figures[key].as_f64().with_context(|| format!("no {key}"));
    Ok(Idle {
        sweep_us_per_object: figure("sweep_us_per_object")?,
        bytes_per_idle_resource: figure("bytes_per_idle_resource")?,
    })
}

/// Entry point of that process: prints its figures.
pub(crate) async fn measure(objects: u32) -> anyhow::Result<()> {
    let database = Database::sqlite()?;
    let substrate = Arc::new(Instant::new(Memory::Hashes));
    let plane = Plane::open("bench", &database, &substrate).await?;
    // First without resources, to get the cost of the loops themselves.
    let running = plane.start(Batching::default(), NEVER);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let empty = machine::resident_bytes()?;

    let pool = database.pool().await?;
    population::make(&pool, objects, State::Ready).await?;
    drop(pool);
    // The first sweep observes each for the first time and writes the observation.
    swept(&running, u64::from(objects)).await?;
    let full = machine::resident_bytes()?;

    // Making all of them due at once is the bench's work and not the sweep's.
    running.stop().await?;
    plane.context.stores.broker.attempt_wake_all(plane.partition).await?;
    let running = plane.start(Batching::default(), NEVER);
    let before = machine::cpu_seconds()?;
    swept(&running, u64::from(objects)).await?;
    let cpu = machine::cpu_seconds()? - before;
    running.stop().await?;
    let figures = json!({
        "sweep_us_per_object": cpu * 1e6 / f64::from(objects),
        "bytes_per_idle_resource": (full.saturating_sub(empty)) as f64 / f64::from(objects),
    });
    println!("{figures}");
    Ok(())
}

/// Waits until this many were claimed, observed and released.
async fn swept(running: &crate::plane::Running, claimed: u64) -> anyhow::Result<()> {
    let started = std::time::Instant::now();
    while running.status.snapshot().claimed < claimed {
        anyhow::ensure!(started.elapsed() < Duration::from_secs(300), "the sweep does not end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The last batches are still in progress; a claim is not yet an observation.
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}
