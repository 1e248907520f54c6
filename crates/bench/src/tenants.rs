//! `tenants`: what the executor of tenant jobs costs beside a loop that does what the document's
//! executor does (six commits of one row and two reads for each job), with the same eight
//! connections to PostgreSQL and fsync on. The steps do nothing, so everything that is measured
//! is the price of durability.

mod claims;
mod durable;
mod fanout;
mod ours;
mod profile;
mod real;
mod sink;
mod theirs;
mod worker;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use self::ours::Ours;
use self::theirs::Theirs;
use crate::database::durable_server;
use crate::machine;
use crate::report::Report;

pub(crate) use self::worker::{COMMAND as WORKER, run as run_worker};

/// Connections of each side.
const CONNECTIONS: u32 = 8;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Both sides run in turn, this often.
    rounds: usize,
    /// Jobs of our side in a round.
    jobs: u32,
    /// How long their side runs in a round.
    time: Duration,
    /// Jobs that run alone.
    single: usize,
    /// Tenants that the built-in steps make, for each number of workers.
    real: [usize; 3],
    /// Tenants of a fan-out, and how often both sides migrate them.
    fanned: usize,
    fanout_rounds: usize,
}

impl Size {
    pub(crate) const FULL: Self = Self {
        rounds: 7,
        jobs: 8_000,
        time: Duration::from_secs(4),
        single: 200,
        real: [60, 200, 200],
        fanned: 1_000,
        fanout_rounds: 3,
    };
    pub(crate) const QUICK: Self = Self {
        rounds: 3,
        jobs: 3_000,
        time: Duration::from_secs(2),
        single: 60,
        real: [20, 60, 60],
        fanned: 200,
        fanout_rounds: 1,
    };
}

pub(crate) async fn run(size: Size) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let server = durable_server()?;
    let mut report = Report::default();
    let folder = server.folder().context("the server is ours")?;
    let flushes = flushes_per_second(folder)?;
    report.note("fsyncs_per_second", flushes, "one page at a time, where the database is");
    let theirs = Theirs::new(&server).await?;
    let plain = Ours::new(&server, None).await?;
    durable::check(&plain).await?;
    many(&theirs, &plain, size, "jobs_speedup", &mut report).await?;
    let with_sink = Ours::new(&server, Some(Arc::new(sink::Outbox))).await?;
    many(&theirs, &with_sink, size, "jobs_speedup_with_sink", &mut report).await?;
    with_sink.check_sink().await?;
    single(&theirs, &plain, size, &mut report).await?;
    claims::measure(&server, size.rounds, &mut report).await?;
    real::measure(&server, size.real, &mut report).await?;
    fanout::measure(&server, size.fanned, size.fanout_rounds, &mut report).await?;
    report.finish();
    Ok(())
}

/// Many jobs at once, both sides in turn. The figure is the median of the rounds.
async fn many(
    theirs: &Theirs,
    ours: &Ours,
    size: Size,
    key: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut rounds = Vec::new();
    for round in 0..=size.rounds {
        theirs.checkpoint().await?;
        let their_rate = theirs.many(size.time).await?;
        theirs.checkpoint().await?;
        let our_rate = ours.many(size.jobs).await?;
        // The first one fills caches and plans, and does not count.
        if round > 0 {
            rounds.push((our_rate / their_rate, our_rate, their_rate));
        }
    }
    rounds.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (worst, middle) = (rounds[0].0, rounds[rounds.len() / 2]);
    let (ratio, our_rate, their_rate) = middle;
    let how = format!("{our_rate:.0} / {their_rate:.0} jobs per second, worst round {worst:.1}");
    report.note(key, ratio, &how);
    Ok(())
}

/// One job after the other, each alone. Both sides in turn, job by job.
async fn single(
    theirs: &Theirs,
    ours: &Ours,
    size: Size,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (mut their_times, mut our_times) = (Vec::new(), Vec::new());
    for n in 0..size.single {
        let started = Instant::now();
        theirs.single(&format!("single-{n}")).await?;
        their_times.push(started.elapsed());
        let started = Instant::now();
        ours.single(&format!("single-{n}")).await?;
        our_times.push(started.elapsed());
    }
    let middle = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let (theirs, ours) = (middle(their_times), middle(our_times));
    let how = format!("{ours:.2} / {theirs:.2} ms, medians");
    report.note("single_latency_ratio", ours / theirs, &how);
    Ok(())
}

/// Writes of one page, each flushed, in the folder of the database.
fn flushes_per_second(folder: &Path) -> anyhow::Result<f64> {
    let path = folder.join("flushes");
    let mut file = File::create(&path)?;
    let (started, mut flushes) = (Instant::now(), 0_u32);
    while started.elapsed() < Duration::from_secs(1) {
        file.write_all(&[0; 8_192])?;
        file.sync_data()?;
        flushes += 1;
    }
    let rate = f64::from(flushes) / started.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate)
}
