//! The time from "node enrolled" to "phase Ready", among idle resources.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use slipway_app::broker::declare::{self, Declare};
use slipway_app::broker::read;
use slipway_controller::resources::Batching;
use slipway_core::broker::phase::Phase;
use slipway_core::ids::ResourceId;
use slipway_testkit::postgres::Postgres;

use crate::database::{Database, Kind};
use crate::plane::{Plane, SWEEP, operator};
use crate::population::{self, State};
use crate::substrate::{self, Memory};

/// Latencies in milliseconds, sorted.
#[derive(Debug)]
pub(crate) struct Latencies(Vec<f64>);

impl Latencies {
    /// The smallest value that this share of the samples does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }
}

/// Which replica receives the enrolments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The replica whose loop does the work.
    Here,
    /// A replica without a running loop: the other one finds the work only by
    /// its poll, which is the worst case of two replicas.
    Elsewhere,
}

pub(crate) async fn measure(
    kind: Kind,
    server: &Postgres,
    arrival: Arrival,
    idle: u32,
    samples: u32,
) -> anyhow::Result<Latencies> {
    let database = Database::new(kind, server).await?;
    let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
    let plane = Plane::open("a", &database, &substrate).await?;
    let other = match arrival {
        Arrival::Here => plane.clone(),
        Arrival::Elsewhere => Plane::open("b", &database, &substrate).await?,
    };
    population::make(&database.pool().await?, idle, State::Idle).await?;
    substrate.adopt((1..=idle).map(|number| format!("bench-{number}")));
    let running = plane.start(Batching::default(), SWEEP);

    // All of them wait for their nodes before the first one enrols.
    let waiting: Vec<(ResourceId, String)> = stream::iter(0..samples)
        .map(|number| declare_and_wait(&plane, number))
        .buffered(16)
        .try_collect()
        .await?;
    let mut taken = Vec::with_capacity(waiting.len());
    for (id, name) in waiting {
        let token = substrate.token(&name).ok_or_else(|| anyhow::anyhow!("no token in {name}"))?;
        other.enrol(token).await?;
        let enrolled = Instant::now();
        until(&plane, id, Phase::Ready).await?;
        taken.push(enrolled.elapsed().as_secs_f64() * 1e3);
    }
    running.stop().await?;
    taken.sort_by(f64::total_cmp);
    Ok(Latencies(taken))
}

async fn declare_and_wait(plane: &Plane, number: u32) -> anyhow::Result<(ResourceId, String)> {
    let input = Declare {
        handle: format!("sample-{number}"),
        blueprint: "local-node".to_owned(),
        parameters: BTreeMap::new(),
        ..Declare::default()
    };
    let id = declare::declare(&plane.context, &operator(), input).await?;
    let name = until(plane, id, Phase::Enrolling).await?;
    Ok((id, name))
}

/// Polls about every millisecond for the phase; returns the object's name.
async fn until(plane: &Plane, id: ResourceId, phase: Phase) -> anyhow::Result<String> {
    let started = Instant::now();
    loop {
        let seen = read::resource(&plane.context, &operator(), id).await?;
        if seen.attempt.phase() == phase {
            return Ok(seen.attempt.xr_name().to_owned());
        }
        anyhow::ensure!(started.elapsed() < Duration::from_secs(30), "{id} is not {phase}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
