//! The raw side: requests of the same client and nothing else.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use slipway_controller::resources::ResourceLoop;

use super::documents;
use super::world::World;

/// Rates of the server and the stand-in without the control plane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    pub(super) applies_per_second: f64,
    /// From the first apply until the stand-in has made all of them Ready.
    pub(super) ready_per_second: f64,
}

/// Server-side applies, with the concurrency of the resource loop.
pub(super) async fn applies(world: &World, count: u32) -> anyhow::Result<Raw> {
    let api = mk_api(world, "bench-raw").await?;
    let started = Instant::now();
    stream::iter(0..count)
        .map(|number| apply(&api, number))
        .buffer_unordered(ResourceLoop::ACTIONS)
        .try_collect::<()>()
        .await?;
    let rate = || f64::from(count) / started.elapsed().as_secs_f64();
    let applies_per_second = rate();
    until_ready(&api, count).await?;
    Ok(Raw { applies_per_second, ready_per_second: rate() })
}

/// The time of a loop that handles all composites one by one every 30 s: the
/// first sweep reads and applies each, the second finds it Ready.
pub(super) async fn sequential_sweeps(world: &World, count: u32) -> anyhow::Result<Duration> {
    let api = mk_api(world, "bench-sequential").await?;
    let mut taken = Duration::from_secs(30);
    let started = Instant::now();
    for number in 0..count {
        api.get_opt(&mk_name(number)).await?;
        apply(&api, number).await?;
    }
    // The second sweep starts 30 s after the first one started, or when that ends.
    taken = taken.max(started.elapsed());
    until_ready(&api, count).await?;
    let started = Instant::now();
    for number in 0..count {
        api.get(&mk_name(number)).await?;
    }
    Ok(taken + started.elapsed())
}

async fn mk_api(world: &World, namespace: &str) -> anyhow::Result<Api<DynamicObject>> {
    world.make_namespace(namespace).await?;
    Ok(world.composites(namespace))
}

fn mk_name(number: u32) -> String {
    format!("raw-{number}")
}

async fn apply(api: &Api<DynamicObject>, number: u32) -> kube::Result<()> {
    let name = mk_name(number);
    let body = documents::plain(&name);
    api.patch(&name, &PatchParams::apply("bench"), &Patch::Apply(&body)).await.map(drop)
}

async fn until_ready(api: &Api<DynamicObject>, count: u32) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let list = api.list(&ListParams::default()).await?;
        let ready = list.items.iter().filter(|item| is_ready(item)).count();
        if ready == count as usize {
            return Ok(());
        }
        anyhow::ensure!(
            started.elapsed() < Duration::from_secs(300),
            "the stand-in brought {ready} of {count} to Ready"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn is_ready(item: &DynamicObject) -> bool {
    let conditions = item.data["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
